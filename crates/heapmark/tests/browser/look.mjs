// Opens report pages in a real browser and says, one line of JSON per page, what is wrong with each: nothing, if all is well.
// ../page.rs makes the pages, sound ones and damaged ones, and judges what is said here.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
];
const WIDTHS = [380, 1600];
const SCHEMES = ["light", "dark"];
// Other programs may want the machine, too: what must come is waited for.
const PATIENCE_MS = 600_000;
// What a damaged page does not show may never come.
const IMPATIENCE_MS = 10_000;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const [executablePath, allocator, ...pages] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: FLAGS, timeout: PATIENCE_MS });
for (const found of await Promise.all(pages.map(faults))) console.log(JSON.stringify(found));
await browser.close();

// What is wrong, by kind. Each kind is there for a damaged page that must fall into it.
async function faults(path) {
  const found = { errors: [], requests: [], undrawn: [], unswitched: [], downloads: [], words: [], access: [] };
  const page = await browser.newPage({ viewport: { width: 1600, height: 900 }, colorScheme: "light" });
  page.setDefaultTimeout(PATIENCE_MS);
  const isDamaged = Object.keys(found).some((kind) => path.endsWith(`/${kind}.html`));
  const patience = isDamaged ? IMPATIENCE_MS : PATIENCE_MS;
  page.on("console", (message) => message.type() === "error" && found.errors.push(message.text()));
  page.on("pageerror", (error) => found.errors.push(String(error)));
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || found.requests.push(request.url()));
  await page.goto(`file://${path}`);
  if (!(await drawn(page))) found.errors.push("the charts were not drawn");

  const workloads = await page.locator("#toolbar option").allTextContents();
  for (const workload of workloads.length ? workloads : [null]) {
    if (workload) await page.locator("#toolbar select").selectOption(workload);
    found.undrawn.push(...(await page.evaluate(undrawn)));
  }
  for (const width of WIDTHS) {
    for (const colorScheme of SCHEMES) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await page.waitForTimeout(500);
      const where = (fault) => `${width} ${colorScheme}: ${fault}`;
      const words = await settled(() => page.evaluate(crowded), (faults) => faults.length === 0, patience);
      found.words.push(...words.map(where));
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
      found.access.push(...serious.map(({ id, nodes }) => where(`${id}: ${nodes[0].html.slice(0, 200)}`)));
    }
  }
  found.unswitched.push(...(await switched(page, patience)));
  found.downloads.push(...(await downloads(page, patience)));
  await page.close();
  return found;
}

// What `look` gives as soon as it is well, or at last.
async function settled(look, well, patience) {
  for (const began = Date.now(); ; await new Promise((done) => setTimeout(done, 100))) {
    const seen = await look();
    if (well(seen) || Date.now() - began > patience) return seen;
  }
}

async function drawn(page) {
  const state = () => document.documentElement.dataset.state === "drawn";
  return page.waitForFunction(state, null, { timeout: PATIENCE_MS }).then(() => true, () => false);
}

// Charts without a mark in them.
function undrawn() {
  const marks = ".point, .points path, .bars path, .heatmaplayer image, .lines path, .errorbars path";
  const empty = [...document.querySelectorAll(".canvas")].filter((canvas) => !canvas.querySelector(marks));
  const charts = document.querySelectorAll("[data-charts]");
  const bare = [...charts].filter((charts) => charts.children.length === 0);
  return [...empty.map((canvas) => canvas.getAttribute("aria-label") ?? "a chart"), ...bare.map((charts) => charts.dataset.charts)];
}

// Words of a chart that lie over each other or are cut, and a page wider than its window.
function crowded() {
  const faults = [];
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page is wider than the window");
  for (const canvas of document.querySelectorAll(".canvas")) {
    const frame = canvas.getBoundingClientRect();
    const texts = [...canvas.querySelectorAll(".xtick text, .ytick text, .xtitle, .ytitle")].filter((text) => text.textContent.trim());
    const boxes = texts.map((text) => ({ words: text.textContent, box: text.getBoundingClientRect(), turned: /rotate\((?!0)/.test(text.getAttribute("transform") ?? "") }));
    for (const { words, box } of boxes) {
      const inside = box.left >= frame.left - 1 && box.right <= frame.right + 1 && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
      if (!inside) faults.push(`cut: ${words}`);
    }
    // The boxes of slanted words overlap where the words do not.
    const level = boxes.filter(({ turned }) => !turned);
    level.forEach(({ words, box }, place) => {
      for (const other of level.slice(place + 1)) {
        const apart = box.right <= other.box.left + 1 || other.box.right <= box.left + 1 || box.bottom <= other.box.top + 2 || other.box.bottom <= box.top + 2;
        if (!apart) faults.push(`over each other: ${words} and ${other.words}`);
      }
    });
  }
  return faults;
}

// Charts that still show the allocator after its button was pressed by keyboard, or that never showed it.
async function switched(page, patience) {
  const showing = (name) => [...document.querySelectorAll(".canvas")].filter((canvas) => {
    const traces = canvas.data ?? [];
    const own = (text) => text === name || text.startsWith(`${name} ·`);
    return traces.some((trace) => own(String(trace.name)) || [trace.x, trace.y].some((names) => names?.some((one) => own(String(one)))));
  }).length;
  const before = await page.evaluate(showing, allocator);
  const button = page.getByRole("button", { name: allocator, exact: true });
  await button.focus();
  await page.keyboard.press("Space");
  const after = await settled(() => page.evaluate(showing, allocator), (charts) => charts === 0, patience);
  const pressed = await button.getAttribute("aria-pressed");
  await page.keyboard.press("Space");
  const again = await settled(() => page.evaluate(showing, allocator), (charts) => charts === before, patience);
  const faults = [];
  if (before === 0) faults.push("no chart shows it at first");
  if (after !== 0 || pressed !== "false") faults.push(`${after} charts still show it`);
  if (again !== before) faults.push(`${again} of ${before} charts show it again`);
  return faults;
}

// Files that buttons should give and do not.
async function downloads(page, patience) {
  const faults = [];
  const given = async (button, start) => {
    const waiting = page.waitForEvent("download", { timeout: patience }).catch(() => null);
    await page.getByRole("button", { name: button }).first().click();
    const download = await waiting;
    const bytes = download && (await readFile(await download.path()));
    if (!bytes?.subarray(0, 300).toString("latin1").includes(start)) faults.push(`${button}: no file that begins so: ${start}`);
  };
  await given(/ as SVG$/, "<svg");
  await given(/ as PNG$/, "PNG");
  await page.locator("details summary").first().click();
  const first = await page.evaluate(() => {
    const { charts } = JSON.parse(document.getElementById("data").textContent);
    return Object.values(charts)[0][0].data.columns[0];
  });
  await given("CSV", `${first},`);
  return faults;
}
