// Draws the charts of the page. Their content comes from the data; this file sets colours, markers,
// sizes, and which allocators and which workload are shown.
"use strict";
(async () => {
  // Data and plotting script are packed, which saves two thirds of the page.
  const unpacked = (id) => {
    const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (byte) => byte.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  };
  if (!globalThis.DecompressionStream) {
    document.querySelector("header").append("The charts need a newer browser; the tables do not.");
    return;
  }
  const { entries, runs, charts } = JSON.parse(await unpacked("data"));
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star"];
  const GLYPHS = ["●", "■", "◆", "▲", "▼", "✚", "✖", "★"];
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const COLOURS = 12;
  const NARROW = 560;
  // Height of a label of a curve, size and width of its letters, in pixels.
  const [LABEL, LETTER, LETTER_WIDTH] = [14, 11, 6.7];
  // An allocator looks the same on every page; those of the user take the places that are left.
  const KNOWN = ["glibc", "jemalloc", "mimalloc2", "mimalloc3", "tcmalloc", "snmalloc", "rpmalloc", "gperftools", "hoard", "tbbmalloc", "dlmalloc", "scudo", "tcmalloc-percpu"];
  const ranking = entries.filter(({ companion }) => !companion);
  const taken = new Set(ranking.map(({ name }) => KNOWN.indexOf(name)));
  const free = Array.from({ length: KNOWN.length + entries.length }, (_, place) => place).filter((place) => !taken.has(place));
  const places = entries.map(({ name }) => (KNOWN.includes(name) ? KNOWN.indexOf(name) : free.shift()));
  const off = { entry: new Set(), run: new Set() };
  // First rounds, later ones and memory of a trace are one choice.
  const groupOf = (name) => name.replace(/^(trace:.+?)(-reuse|-memory)$/, "$1");
  const workloads = [...new Set(Object.values(charts).flat().map((view) => view.workload).filter((name) => name !== null).map(groupOf))];
  let workload = workloads[0] ?? null;

  const element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  };

  const theme = () => {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    const names = ["paper", "ink", "soft", "line", "raised", "companion"];
    const palette = Array.from({ length: COLOURS }, (_, place) => read(`c${place}`));
    return { ...Object.fromEntries(names.map((name) => [name, read(name)])), palette };
  };

  // Companions take no colour from the others.
  const colourOf = (entry, colours) =>
    entry === null || entries[entry].companion ? colours.companion : colours.palette[places[entry] % COLOURS];

  // Gives a trace of the data the colour and marker of its allocator, or of its place among several lines of that; further runs are hollow.
  const styled = ({ entry, line, run, drawn }, colours) => {
    const trace = structuredClone(drawn);
    const place = line ?? (entry === null ? null : places[entry]);
    const colour = line === null ? colourOf(entry, colours) : colours.palette[line % COLOURS];
    const symbol = trace.marker?.symbol ?? SYMBOLS[(place ?? 0) % SYMBOLS.length] + (run % 2 ? "-open" : "");
    const heap = trace.mode === "markers" && trace.x.length > 1;
    // A diamond lies on a bar of its allocator's colour.
    const paint = drawn.marker?.symbol === "diamond-open" ? colours.ink : colour;
    trace.marker = { color: paint, line: { width: 1.5, color: paint } };
    trace.cliponaxis = false;
    if (trace.type === "bar") {
      trace.marker.opacity = run % 2 ? 0.5 : 0.85;
      return trace;
    }
    Object.assign(trace.marker, { size: heap ? 8 : 10, opacity: heap ? 0.65 : 1, symbol });
    trace.line = { color: colour, width: 2, dash: place === null ? "dot" : DASHES[(place + run) % DASHES.length] };
    // A line across the chart has its own words.
    if (trace.mode === "lines+text") Object.assign(trace, { line: { color: colours.soft, width: 1, dash: "dash" }, textfont: { color: colours.soft, size: 11 } });
    for (const reach of [trace.error_x, trace.error_y]) if (reach) Object.assign(reach, { color: colour, thickness: 2, width: 5 });
    return trace;
  };

  const shown = (plot) =>
    plot.traces.filter(({ entry, run }) => !off.run.has(run) && (entry === null || !off.entry.has(entry)));

  const laidOut = (plot, traces, width, colours) => {
    const layout = structuredClone(plot.layout);
    const named = layout.yaxis.type === "category";
    const rows = new Set(named ? traces.flatMap(({ drawn }) => drawn.y) : []).size;
    const axis = { gridcolor: colours.line, linecolor: colours.line, zeroline: false, automargin: true, title: undefined };
    for (const name of ["xaxis", "yaxis"]) {
      const own = layout[name];
      layout[name] = { ...axis, ...own, title: own.title && { ...own.title, standoff: 10, font: { size: 12, color: colours.soft } } };
    }
    layout.yaxis.showgrid = true;
    if (named) Object.assign(layout.yaxis, { range: [rows - 0.4, -0.6], dtick: 1 });
    if (layout.xaxis.type === "category") layout.xaxis.dtick = 1;
    if (!named && width < NARROW) layout.yaxis.nticks = 6;
    if (width < NARROW) layout.xaxis.nticks = 5;
    return {
      ...layout, width, height: named ? rows * 28 + 76 : Math.min(440, Math.max(300, width * 0.55)),
      shapes: (layout.shapes ?? []).map((shape) => ({ ...shape, line: { color: colours.soft, width: 1 } })),
      barmode: "overlay", showlegend: false, hovermode: "closest", dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      margin: { l: 12, r: named ? 16 : width < NARROW ? 36 : 120, t: 8, b: 12 }, paper_bgcolor: colours.paper, plot_bgcolor: colours.paper,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.ink },
      hoverlabel: { bgcolor: colours.raised, bordercolor: colours.line, font: { color: colours.ink }, align: "left" },
    };
  };

  // The chart in Plotly's form.
  const figureOf = (plot, width) => {
    const colours = theme();
    const traces = shown(plot);
    return { data: traces.map((trace) => styled(trace, colours)), layout: laidOut(plot, traces, width, colours) };
  };

  // Offsets of a label from its point, the nearest first: beside the end of a curve, around a mark.
  const STEPS = Array.from({ length: 41 }, (_, step) => (step % 2 ? 1 : -1) * Math.ceil(step / 2));
  const BESIDE = STEPS.map((step) => [14, step * LABEL]);
  const AROUND = [16, 26, 38, 52, 68, 90].flatMap((far) =>
    [[1, 0], [0, -1], [0, 1], [0.8, -0.8], [0.8, 0.8], [-1, 0], [-0.8, -0.8], [-0.8, 0.8]].map(([x, y]) => [x * far, y * far]));

  // A name for each curve and mark, where it covers nothing, with a line to it; a narrow chart has room for the numbers of the buttons.
  const labelled = (canvas) => {
    const { xaxis, yaxis, width } = canvas._fullLayout;
    const drawn = shown(canvas.plot).map(({ entry, line }, at) => ({ entry, line, trace: canvas.data[at] }));
    const curves = drawn.filter(({ trace: { type, x } }) => type !== "bar" && x.length > 0);
    if (yaxis.type === "category" || curves.length < 2) return [];
    const colours = theme();
    const place = (trace, at) => [xaxis._offset + xaxis.d2p(trace.x[at]), yaxis._offset + yaxis.d2p(trace.y[at])];
    const points = curves.flatMap(({ trace }) => trace.x.map((_, at) => place(trace, at)));
    const taken = [];
    // The words of the axes stand left of the area and below it.
    const free = ([left, top, right, bottom]) =>
      left >= xaxis._offset && right <= width && top >= 0 && bottom <= yaxis._offset + yaxis._length &&
      !taken.some((box) => left < box[2] && box[0] < right && top < box[3] && box[1] < bottom) &&
      !points.some(([x, y]) => left - 4 < x && x < right + 4 && top - 4 < y && y < bottom + 4);
    const inside = (axis, value) => (axis.type === "log" ? Math.log10(value) : value);
    return curves.filter(({ trace }) => trace.mode !== "lines+text").flatMap(({ entry, line, trace }) => {
      const name = width < NARROW ? String((line ?? ranking.indexOf(entries[entry])) + 1) : trace.name;
      if (name === "0") return [];
      const at = trace.x.length - 1;
      const [x, y] = place(trace, at);
      const long = name.replace(/&(lt|gt|amp);/g, "&").length * LETTER_WIDTH + 2;
      const boxOf = ([right, down]) => {
        const left = right > 0 ? x + right : right < 0 ? x + right - long : x - long / 2;
        return [left, y + down - LABEL / 2, left + long, y + down + LABEL / 2];
      };
      const offset = [...(at > 0 ? BESIDE : []), ...AROUND].find((one) => free(boxOf(one)));
      if (!offset) return [];
      taken.push(boxOf(offset));
      return [{
        text: name, x: inside(xaxis, trace.x[at]), y: inside(yaxis, trace.y[at]), showarrow: true, arrowhead: 0, arrowwidth: 1, arrowcolor: colours.soft,
        standoff: 6, ax: offset[0], ay: offset[1], xanchor: offset[0] > 0 ? "left" : offset[0] < 0 ? "right" : "center", yanchor: "middle",
        borderpad: 0, font: { size: LETTER },
      }];
    });
  };

  const draw = async (canvas, plot) => {
    const figure = canvas.closest("figure");
    figure.hidden = shown(plot).length === 0;
    if (figure.hidden) return Plotly.purge(canvas);
    const { data, layout } = figureOf(plot, canvas.clientWidth);
    canvas.setAttribute("aria-label", `${plot.title || "chart"}; its numbers stand below it under Data`);
    await Plotly.react(canvas, data, layout, { displayModeBar: false, responsive: false, doubleClick: "reset" });
    const annotations = labelled(canvas);
    const { xaxis, yaxis } = canvas._fullLayout;
    // Plotly would widen ranges that are not set to fit the labels, and labels that were placed apart would overlap.
    const ranges = { "xaxis.range": [...xaxis.range], "yaxis.range": [...yaxis.range] };
    if (annotations.length > 0) await Plotly.relayout(canvas, { annotations, ...ranges });
  };

  const save = (text, name, type) => {
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const fileName = (id, title) => `heapmark-${id}-${title}`.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/-$/, "");

  const download = (id, plot, format) => {
    const { data, layout } = figureOf(plot, 900);
    const named = new Set();
    for (const trace of data) trace.showlegend = !named.has(trace.name) && Boolean(named.add(trace.name));
    const whole = { ...layout, title: { text: plot.title.replaceAll("&", "&amp;").replaceAll("<", "&lt;"), font: { size: 15 } }, margin: { ...layout.margin, t: 60 }, height: layout.height + 60, showlegend: true };
    return Plotly.downloadImage({ data, layout: whole }, { format, width: 900, height: whole.height, filename: fileName(id, plot.title) });
  };

  const csv = ({ columns, rows }) => {
    const cell = (value) => (value === null ? "" : /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
    return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
  };

  const table = ({ columns, rows }, label) => {
    const digits = (value) => (typeof value !== "number" || Number.isInteger(value) ? value ?? "" : Number(value.toPrecision(6)));
    const number = (place) => (rows.some((row) => typeof row[place] === "number") ? { class: "number" } : {});
    const head = columns.map((name, place) => element("th", { scope: "col", ...number(place) }, name));
    const line = (row) => element("tr", {}, ...row.map((value, place) => element("td", number(place), String(digits(value)))));
    const body = element("tbody", {}, ...rows.map(line));
    return element("div", { class: "table", tabindex: "0", role: "region", "aria-label": label }, element("table", {}, element("thead", {}, element("tr", {}, ...head)), body));
  };

  const details = (id, view) => {
    const label = `Data of ${document.getElementById(`${id}-heading`).textContent}`;
    const made = element("details", { class: "data" }, element("summary", {}, "Data"));
    const button = element("button", { type: "button", onclick: () => save(csv(view.data), `${fileName(id, view.workload ?? "all")}.csv`, "text/csv") }, "CSV");
    made.addEventListener("toggle", () => made.children.length === 1 && made.append(button, table(view.data, label)), { once: true });
    return made;
  };

  const figure = (id, plot) => {
    const canvas = element("div", { class: "canvas", role: "img" });
    const button = (format) =>
      element("button", { type: "button", onclick: () => download(id, plot, format), "aria-label": `${plot.title} as ${format.toUpperCase()}` }, format.toUpperCase());
    canvas.plot = plot;
    const lines = plot.traces.filter(({ line }) => line !== null);
    const key = lines.map(({ line, drawn }) => element("span", {}, element("span", { "aria-hidden": "true", "data-line": line }), drawn.name));
    const words = key.length ? [element("p", { class: "key" }, ...key)] : [];
    return element("figure", {}, element("figcaption", {}, element("span", {}, plot.title), button("svg"), button("png")), ...words, canvas);
  };

  // Replaces the content by that of the selected workload.
  const build = () => {
    for (const place of document.querySelectorAll("[data-charts]")) {
      place.querySelectorAll(".canvas").forEach((canvas) => Plotly.purge(canvas));
      const id = place.dataset.charts;
      const views = charts[id].filter((view) => view.workload === null || groupOf(view.workload) === workload);
      const made = views.map((view) => element("div", { class: "view" }, ...view.plots.map((plot) => figure(id, plot)), details(id, view)));
      place.replaceChildren(...made, ...(views.length ? [] : [element("p", { class: "note" }, `Nothing of ${workload} here.`)]));
    }
    document.querySelectorAll("[data-workload]").forEach((chart) => (chart.hidden = workload !== null && groupOf(chart.dataset.workload) !== workload));
    // A section without content for the workload is hidden, and so is its link.
    for (const section of document.querySelectorAll("main > section")) {
      section.hidden = !section.querySelector(".view figure:not([hidden]), .table, a");
      const link = document.querySelector(`nav a[href="#${section.id}"]`);
      if (link) link.parentElement.hidden = section.hidden;
    }
    return paintMarks();
  };

  let drawings = 0;
  const redraw = async () => {
    document.documentElement.dataset.state = "drawing";
    drawings += 1;
    const canvases = [...document.querySelectorAll(".canvas")];
    await Promise.all(canvases.map((canvas) => draw(canvas, canvas.plot)));
    drawings -= 1;
    if (drawings === 0) document.documentElement.dataset.state = "drawn";
  };

  const toggle = (kind, key) => (event) => {
    const pressed = event.currentTarget.getAttribute("aria-pressed") !== "true";
    event.currentTarget.setAttribute("aria-pressed", String(pressed));
    pressed ? off[kind].delete(key) : off[kind].add(key);
    redraw();
  };

  const chip = (kind, key, name, glyph) =>
    element("button", { type: "button", class: "chip", "aria-pressed": "true", onclick: toggle(kind, key) }, ...glyph, name);

  const toolbar = () => {
    const bar = document.getElementById("toolbar");
    if (workloads.length > 1) {
      const choose = (event) => { workload = event.target.value; build(); };
      const options = workloads.map((name) => element("option", { value: name }, name));
      bar.append(element("select", { "aria-label": "Workload", onchange: choose }, ...options));
    }
    const drawn = new Set(Object.values(charts).flat().flatMap((view) => view.plots).flatMap((plot) => plot.traces).map(({ entry }) => entry));
    const ofMember = ({ name }, place) => {
      const mark = element("span", { class: "mark", "aria-hidden": "true", "data-entry": place });
      const number = ranking.indexOf(entries[place]) + 1;
      const told = number > 0 ? [element("span", { class: "nr", "aria-hidden": "true" }, `${number} `)] : [];
      return drawn.has(place) ? [chip("entry", place, name, [...told, mark])] : [];
    };
    const ofRuns = runs.length > 1 ? runs.map((name, place) => chip("run", place, name, [])) : [];
    bar.append(element("div", { class: "chips", role: "group", "aria-label": "Shown in the charts" }, ...ofRuns, ...entries.flatMap(ofMember)));
    bar.hidden = false;
  };

  const paintMarks = () => {
    const colours = theme();
    for (const mark of document.querySelectorAll("[data-entry]")) {
      const entry = Number(mark.dataset.entry);
      mark.textContent = GLYPHS[places[entry] % GLYPHS.length];
      mark.style.color = colourOf(entry, colours);
    }
    for (const mark of document.querySelectorAll("[data-line]")) {
      const line = Number(mark.dataset.line);
      mark.textContent = `${GLYPHS[line % GLYPHS.length]} `;
      mark.style.color = colours.palette[line % COLOURS];
    }
    return redraw();
  };

  let waiting;
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintMarks);
  // Paper is white and narrow.
  const printing = (on) => () => {
    document.documentElement.classList.toggle("printing", on);
    document.querySelectorAll(".canvas").forEach((canvas) => (canvas.style.width = on ? "660px" : ""));
    paintMarks();
  };
  addEventListener("beforeprint", printing(true));
  addEventListener("afterprint", printing(false));

  document.head.append(element("script", {}, await unpacked("plotting")));
  toolbar();
  await build();
})();
