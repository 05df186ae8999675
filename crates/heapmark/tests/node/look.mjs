// Opens report pages in a real browser and says, one line of JSON per page, what is wrong with each: nothing, if all is well.
// ../further/outside/page.rs makes the pages, sound ones and damaged ones, and judges what is said here.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
];
// Other programs may want the machine, too: what must come is waited for.
const PATIENCE_MS = 600_000;
// What a damaged page does not show may never come.
const IMPATIENCE_MS = 10_000;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const [executablePath, depth, allocator, ...pages] = process.argv.slice(2);
// Width and scheme of a look: each of both once, or all pairs.
const BRIEF = [[1600, "light"], [380, "dark"]];
const LOOKS = depth === "brief" ? BRIEF : [...BRIEF, [1600, "dark"], [380, "light"]];
const browser = await chromium.launch({ executablePath, args: FLAGS, timeout: PATIENCE_MS });
for (const found of await Promise.all(pages.map(faults))) console.log(JSON.stringify(found));
await browser.close();

// What is wrong, by kind. Each kind is there for a damaged page that must fall into it.
async function faults(path) {
  const found = { errors: [], requests: [], undrawn: [], unswitched: [], downloads: [], words: [], access: [] };
  for (const kind of ["contrast", "colours", "ranking", "head", "sticky", "wrapped", "labels", "scriptless", "links", "figures"]) found[kind] = [];
  const page = await browser.newPage({ viewport: { width: 1600, height: 900 }, colorScheme: "light" });
  page.setDefaultTimeout(PATIENCE_MS);
  // Of a damaged page only what must show the damage is looked at.
  const only = Object.keys(found).find((kind) => path.endsWith(`/${kind}.html`));
  const wants = (...kinds) => !only || kinds.includes(only);
  const patience = only ? IMPATIENCE_MS : PATIENCE_MS;
  page.on("console", (message) => message.type() === "error" && found.errors.push(message.text()));
  page.on("pageerror", (error) => found.errors.push(String(error)));
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || found.requests.push(request.url()));
  await page.goto(`file://${path}`);
  if (!(await drawn(page))) found.errors.push("the charts were not drawn");

  if (wants("undrawn")) {
    const workloads = await page.locator("#toolbar option").allTextContents();
    for (const workload of workloads.length ? workloads : [null]) {
      if (workload) await page.locator("#toolbar select").selectOption(workload);
      await drawn(page);
      found.undrawn.push(...(await page.evaluate(undrawn)));
    }
  }
  found.ranking.push(...(await page.evaluate(unranked, await page.evaluate(names))));
  found.head.push(...(await page.evaluate(headless)));
  found.labels.push(...(await page.evaluate(unlabelled)));
  found.figures.push(...(await page.evaluate(misspelt)));
  if (wants("links")) found.links.push(...(await page.evaluate(astray)), ...(await unopened(page)));
  const varying = wants("undrawn", "words", "contrast", "colours", "wrapped", "sticky", "access");
  for (const [width, colorScheme] of varying ? LOOKS : []) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    const where = (fault) => `${width} ${colorScheme}: ${fault}`;
    const old = await settled(() => page.evaluate(stale), (faults) => faults.length === 0, patience);
    found.undrawn.push(...old.map(where));
    found.words.push(...(await page.evaluate(crowded)).map(where));
    found.contrast.push(...(await page.evaluate(faint)).map(where));
    found.colours.push(...(await page.evaluate(alike)).map(where));
    found.wrapped.push(...(await page.evaluate(wrapped)).map(where));
    if (width < 600) found.sticky.push(...(await page.evaluate(carriedAway)).map(where));
    if (!wants("access")) continue;
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
    const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
    found.access.push(...serious.map(({ id, nodes }) => where(`${id}: ${nodes[0].html.slice(0, 200)}`)));
  }
  if (wants("unswitched")) found.unswitched.push(...(await switched(page, patience)));
  if (wants("downloads")) found.downloads.push(...(await downloads(page, patience)));
  const shown = await page.evaluate(scriptless);
  await page.close();
  const bare = await browser.newPage({ viewport: { width: 1600, height: 900 }, javaScriptEnabled: false });
  await bare.goto(`file://${path}`);
  const without = await bare.evaluate(scriptless);
  await bare.close();
  if (without.join() !== shown.join()) found.scriptless.push(`without JavaScript ${without}, with it ${shown}`);
  if (shown.some((number) => number === 0) && !(await isOther(path))) found.scriptless.push(`nothing to see: ${shown}`);
  return found;
}

// A page without times of operations over several cases: of a trace, or of other runs only.
async function isOther(path) {
  return !(await readFile(path, "latin1")).includes('<section id="times"');
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
  const marks = ".point, .points path, .bars path, .lines path, .errorbars path";
  const empty = [...document.querySelectorAll(".canvas")].filter((canvas) => !canvas.querySelector(marks));
  const charts = document.querySelectorAll("[data-charts]");
  const bare = [...charts].filter((charts) => charts.children.length === 0);
  return [...empty.map((canvas) => canvas.getAttribute("aria-label") ?? "a chart"), ...bare.map((charts) => charts.dataset.charts)];
}

// Attributes of figures that plotly.js does not know, and values that it does not take: it leaves them out silently. (It knows
// barmode only where there are bars.)
function misspelt() {
  const faults = ({ data, layout }) => Plotly.validate(data, layout) ?? [];
  const all = [...document.querySelectorAll(".canvas")].flatMap(faults);
  return all.filter(({ code, astr }) => ["schema", "value"].includes(code) && astr !== "barmode").map(({ msg }) => msg);
}

// Charts that were drawn for another width or theme than the window's, or are being drawn.
function stale() {
  if (document.documentElement.dataset.state !== "drawn") return ["the charts are not drawn"];
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();
  const isStale = ({ clientWidth, _fullLayout }) => _fullLayout?.width !== clientWidth || _fullLayout.paper_bgcolor !== paper;
  return [...document.querySelectorAll(".canvas")].filter(isStale).map(({ clientWidth, _fullLayout: drawn }) =>
    `drawn ${drawn?.width} px wide on ${drawn?.paper_bgcolor}, while it is ${clientWidth} on ${paper}`);
}

// Words of a chart that lie over each other or are cut, and a page wider than its window.
function crowded() {
  const faults = [];
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page is wider than the window");
  for (const canvas of document.querySelectorAll(".canvas")) {
    // Axes that give way to labels move what was placed apart together: too rarely to be seen below.
    const { annotations, xaxis, yaxis } = canvas._fullLayout ?? {};
    if (annotations?.length && (xaxis.autorange || yaxis.autorange)) faults.push(`labels widen the axes of ${canvas.getAttribute("aria-label")}`);
    const frame = canvas.getBoundingClientRect();
    const texts = [...canvas.querySelectorAll(".xtick text, .ytick text, .xtitle, .ytitle, .annotation-text")].filter((text) => text.textContent.trim());
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
        if (!apart) faults.push(`over each other: ${words} and ${other.words} in ${canvas.getAttribute("aria-label")}`);
      }
    });
  }
  return faults;
}

// The allocators that rank, as the data of the page name them.
async function names() {
  const data = document.getElementById("data");
  if (!data) return [];
  const packed = Uint8Array.from(atob(data.textContent), (byte) => byte.charCodeAt(0));
  const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  return JSON.parse(text).entries.filter(({ companion }) => !companion).map(({ name }) => name);
}

// Allocators that the ranking lacks, bars that cannot be seen, and a first screen that does not hold it.
function unranked(names) {
  if (!document.getElementById("times")) return [];
  const faults = [];
  const rows = [...document.querySelectorAll(".ranking tbody tr")];
  const isText = ({ nodeType, textContent }) => nodeType === Node.TEXT_NODE && textContent.trim() !== "";
  const listed = rows.map((row) => [...row.querySelector("th").childNodes].find(isText)?.textContent.trim());
  faults.push(...names.filter((name) => !listed.includes(name)).map((name) => `not there: ${name}`));
  for (const row of rows.filter((row) => row.querySelector(".reach"))) {
    if (row.querySelector(".reach").getBoundingClientRect().width < 2) faults.push(`no bar: ${row.textContent.trim()}`);
  }
  const block = document.querySelector(".ranking")?.getBoundingClientRect();
  const alone = document.querySelectorAll(".run").length === 1;
  if (alone && block && (block.bottom > innerHeight || block.width < innerWidth * 0.85)) faults.push(`outside the first screen, or narrow: ${block.bottom}, ${block.width}`);
  return faults;
}

// A head without the run's machine and date, or without badges.
function headless() {
  const title = document.querySelector("h1").textContent;
  if (title.startsWith("heapmark trace: ")) return [];
  const faults = [];
  const isCheck = title.startsWith("heapmark check: ");
  const isPool = title.startsWith("heapmark campaign: ");
  if (!/^heapmark(?: check| campaign)?: .+, \d{4}-\d\d-\d\d/.test(title)) faults.push(`the title: ${title}`);
  for (const run of document.querySelectorAll(".run")) {
    if (!isPool && !/\d CPUs?, .* of memory, Linux \d/.test(run.textContent)) faults.push("no machine");
    if (!/heapmark \d.*(suite|preset) .*(started \d|of \d+ machines)/.test(run.textContent)) faults.push("no suite");
    if (!isCheck && !isPool && run.querySelectorAll(".badges .good, .badges .doubt").length < 2) faults.push("no badges");
  }
  return faults;
}

// Curves of a wide page of which none has its name beside it.
function unlabelled() {
  const curves = [...document.querySelectorAll(".canvas")].filter(({ data, _fullLayout }) =>
    _fullLayout?.yaxis.type !== "category" && data?.filter(({ type, x }) => type !== "bar" && x.length > 0).length > 1);
  const bare = curves.filter((canvas) => ![...canvas.querySelectorAll(".annotation-text")].some((text) => text.textContent.trim()));
  return bare.map((canvas) => canvas.getAttribute("aria-label"));
}

// Words in charts, matrices, badges and rankings with a contrast below 4.5.
function faint() {
  const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  // A page has thousands of words in a few colours.
  const known = new Map();
  const read = (colour) => {
    if (!known.has(colour)) {
      pixel.clearRect(0, 0, 1, 1);
      pixel.fillStyle = colour;
      pixel.fillRect(0, 0, 1, 1);
      known.set(colour, [...pixel.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(colour);
  };
  const light = (colour) => {
    const [r, g, b] = read(colour).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const behind = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return read(colour)[3] === 255 || !element.parentElement ? colour : behind(element.parentElement);
  };
  const words = document.querySelectorAll(".canvas svg text, .matrix td, .matrix th, .badges a, .ranking td, .ranking th, td.verdict");
  const faults = new Set();
  for (const word of words) {
    if (!word.textContent.trim()) continue;
    const style = getComputedStyle(word);
    const [ours, theirs] = [word.closest("svg") ? style.fill : style.color, behind(word.closest(".canvas") ?? word)].map(light);
    const contrast = Math.max(ours, theirs) / Math.min(ours, theirs);
    if (contrast < 4.5) faults.add(`${contrast.toFixed(2)}: ${word.getAttribute("class")} ${word.textContent.trim()}`);
  }
  return [...faults].slice(0, 5);
}

// Two of the twelve colours that look alike, to some kind of colour vision, or one that is hard to see on the paper; and two
// allocators with the same colour and marker.
function alike() {
  const style = getComputedStyle(document.documentElement);
  const linear = (name) => style.getPropertyValue(name).trim().match(/\w\w/g).map((part) => parseInt(part, 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const times = (rows, parts) => rows.map((row) => row.reduce((sum, factor, place) => sum + factor * parts[place], 0));
  // Machado, Oliveira, Fernandes 2009: no red, no green, no blue receptors.
  const VISIONS = {
    all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
  };
  // Ottosson 2020: distances in OKLab are about as large as they look.
  const oklab = (parts) => {
    const cones = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], parts);
    return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], cones.map(Math.cbrt));
  };
  const faults = [];
  const colours = Array.from({ length: 12 }, (_, place) => linear(`--c${place}`));
  for (const [vision, rows] of Object.entries(VISIONS)) {
    const seen = colours.map((parts) => oklab(times(rows, parts).map((part) => Math.min(1, Math.max(0, part)))));
    seen.forEach((one, place) => seen.slice(0, place).forEach((other, before) => {
      const distance = Math.hypot(...one.map((part, axis) => part - other[axis]));
      if (distance < (vision === "all" ? 0.12 : 0.06)) faults.push(`${vision}: ${before} and ${place} are ${distance.toFixed(3)} apart`);
    }));
  }
  const light = (parts) => 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05;
  const paper = light(linear("--paper"));
  colours.forEach((parts, place) => {
    const contrast = Math.max(light(parts), paper) / Math.min(light(parts), paper);
    if (contrast < 3) faults.push(`${place} on paper: ${contrast.toFixed(2)}`);
  });
  const marks = [...document.querySelectorAll(".chip .mark")].slice(0, 13).map((mark) => `${mark.style.color} ${mark.textContent}`);
  if (new Set(marks).size < marks.length) faults.push(`two have the same mark: ${marks}`);
  return faults;
}

// Numbers and verdicts in more than one line.
function wrapped() {
  const lines = (cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top / 8))).size;
  };
  const cells = [...document.querySelectorAll("td.number, td.word, td.verdict, .matrix td")].filter((cell) => lines(cell) > 1);
  return cells.slice(0, 3).map((cell) => cell.textContent);
}

// Tables whose first column leaves the window when the others are looked at.
function carriedAway() {
  const wide = [...document.querySelectorAll(".table")].filter((box) => box.scrollWidth > box.clientWidth + 50);
  const gone = wide.filter((box) => {
    // A matrix is turned on a phone.
    const first = box.querySelector(".matrix thead th:nth-child(2), table:not(.matrix) tbody tr > :first-child");
    const before = first.getBoundingClientRect().left;
    box.scrollLeft = 50;
    const after = first.getBoundingClientRect().left;
    box.scrollLeft = 0;
    return Math.abs(after - before) > 2;
  });
  return gone.map((box) => box.getAttribute("aria-label"));
}

// How many rows, bars and cells of the ranking and the matrices can be seen.
function scriptless() {
  return [".ranking tbody tr", ".ranking .reach", ".matrix td"].map((what) =>
    [...document.querySelectorAll(what)].filter((element) => element.getClientRects().length > 0).length);
}

// Links to places that the page lacks.
function astray() {
  const links = [...document.querySelectorAll('a[href^="#"]')].map((link) => decodeURIComponent(link.hash.slice(1)));
  return [...new Set(links)].filter((id) => !document.getElementById(id)).map((id) => `nothing is called ${id}`);
}

// Cells of matrices that lead to nothing that can be seen: a pointer tries the first, its own click each other one.
async function unopened(page) {
  const links = page.locator(".matrix td a");
  if (await links.count()) await links.first().click();
  return page.evaluate(async () => {
    const hidden = new Set();
    for (const link of document.querySelectorAll(".matrix td a")) {
      const followed = location.hash !== link.hash && new Promise((done) => addEventListener("hashchange", done, { once: true }));
      link.click();
      await followed;
      if (!document.querySelector(":target")?.checkVisibility()) hidden.add(location.hash);
    }
    scrollTo(0, 0);
    return [...hidden].map((id) => `not to be seen: ${id}`);
  });
}

// Charts that still show the allocator after its button was pressed by keyboard, or that never showed it.
async function switched(page, patience) {
  if (!(await page.locator(".canvas").count())) return [];
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
  if (!(await page.locator(".canvas").count())) return [];
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
  await page.locator("details.data summary").first().click();
  const first = await page.locator("details.data th").first().textContent();
  await given("CSV", `${first},`);
  return faults;
}
