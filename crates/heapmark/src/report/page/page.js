// Draws the charts of the page. Their content comes from the data; this file sets colours, markers,
// sizes, and which allocators and which workload are shown.
"use strict";
(() => {
  const { entries, runs, charts } = JSON.parse(document.getElementById("data").textContent);
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star"];
  const GLYPHS = ["●", "■", "◆", "▲", "▼", "✚", "✖", "★"];
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const NARROW = 560;
  const off = { entry: new Set(), run: new Set() };
  const workloads = [...new Set(Object.values(charts).flat().map((view) => view.workload).filter((name) => name !== null))];
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
    const names = ["paper", "ink", "soft", "line", "raised", "companion", "faster", "slower", "even"];
    return { ...Object.fromEntries(names.map((name) => [name, read(name)])), palette: read("palette").split(/\s+/) };
  };

  const colourOf = (entry, colours) =>
    entry === null || entries[entry].companion ? colours.companion : colours.palette[entry % colours.palette.length];

  // As in the data, with the colour and the marker of its allocator; further runs are hollow.
  const styled = ({ entry, run, drawn }, colours, cells) => {
    const trace = structuredClone(drawn);
    const colour = colourOf(entry, colours);
    if (trace.type === "heatmap") {
      return {
        ...trace, xgap: 2, ygap: 2, showscale: false, zmin: -2, zmax: 2, texttemplate: cells ? "%{text}" : undefined,
        colorscale: [[0, colours.faster], [0.5, colours.even], [1, colours.slower]],
      };
    }
    const symbol = trace.marker?.symbol ?? SYMBOLS[(entry ?? 0) % SYMBOLS.length] + (run % 2 ? "-open" : "");
    const heap = trace.mode === "markers" && trace.x.length > 1;
    // A diamond lies on a bar of its allocator's colour.
    const paint = drawn.marker?.symbol === "diamond-open" ? colours.ink : colour;
    trace.marker = { color: paint, size: heap ? 8 : 10, opacity: heap ? 0.65 : 1, symbol, line: { width: 1.5, color: paint } };
    if (trace.type === "bar") Object.assign(trace.marker, { opacity: run % 2 ? 0.5 : 0.85, symbol: undefined });
    trace.line = { color: colour, width: 2, dash: entry === null ? "dot" : DASHES[(entry + run) % DASHES.length] };
    if (trace.error_x) Object.assign(trace.error_x, { color: colour, thickness: 2, width: 5 });
    if (trace.mode === "text") trace.textfont = { color: colours.soft };
    trace.cliponaxis = false;
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
      margin: { l: 12, r: 16, t: 8, b: 12 }, paper_bgcolor: colours.paper, plot_bgcolor: colours.paper,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.ink },
      hoverlabel: { bgcolor: colours.raised, bordercolor: colours.line, font: { color: colours.ink }, align: "left" },
    };
  };

  // Joins the columns of all allocators into one trace: Plotly spaces columns evenly only within one.
  const joined = (traces) => {
    const columns = traces.filter(({ drawn }) => drawn.type === "heatmap");
    if (columns.length === 0) return traces;
    const cases = [...new Set(columns.flatMap(({ drawn }) => drawn.y))];
    const fields = (key) => cases.map((name) => columns.map(({ drawn }) => drawn[key][drawn.y.indexOf(name)]?.[0] ?? null));
    const drawn = { ...columns[0].drawn, x: columns.map((one) => one.drawn.x[0]), y: cases };
    for (const key of ["z", "text", "hovertext"]) drawn[key] = fields(key);
    return [{ ...columns[0], drawn }, ...traces.filter((trace) => !columns.includes(trace))];
  };

  // The chart in Plotly's form.
  const figureOf = (plot, width) => {
    const colours = theme();
    const traces = joined(shown(plot));
    const columns = new Set(traces.flatMap(({ drawn }) => (drawn.type === "heatmap" ? drawn.x : []))).size;
    const cells = columns > 0 && (width - 150) / columns > 34;
    const data = traces.map((trace) => styled(trace, colours, cells));
    const layout = laidOut(plot, traces, width, colours);
    if (columns > 0) {
      Object.assign(layout.xaxis, { side: "top", showgrid: false });
      layout.yaxis.showgrid = false;
      // Long names in two lines leave room for the fields.
      const broken = (name) => (width < NARROW ? name.replace(", ", ",<br>") : name);
      data.forEach((trace) => (trace.y = trace.y.map(broken)));
      if (width < NARROW) layout.height += new Set(data.flatMap((trace) => trace.y)).size * 8;
    }
    return { data, layout };
  };

  const draw = (canvas, plot) => {
    const { data, layout } = figureOf(plot, canvas.clientWidth);
    canvas.setAttribute("aria-label", `${plot.title || "chart"}; its numbers stand below it under Data`);
    return Plotly.react(canvas, data, layout, { displayModeBar: false, responsive: false, doubleClick: "reset" });
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
    for (const trace of data) trace.showlegend = trace.type !== "heatmap" && !named.has(trace.name) && Boolean(named.add(trace.name));
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
    const made = element("details", {}, element("summary", {}, "Data"));
    const button = element("button", { type: "button", onclick: () => save(csv(view.data), `${fileName(id, view.workload ?? "all")}.csv`, "text/csv") }, "CSV");
    made.addEventListener("toggle", () => made.children.length === 1 && made.append(button, table(view.data, label)), { once: true });
    return made;
  };

  const figure = (id, plot) => {
    const canvas = element("div", { class: "canvas", role: "img" });
    const button = (format) =>
      element("button", { type: "button", onclick: () => download(id, plot, format), "aria-label": `${plot.title} as ${format.toUpperCase()}` }, format.toUpperCase());
    canvas.plot = plot;
    return element("figure", {}, element("figcaption", {}, element("span", {}, plot.title), button("svg"), button("png")), canvas);
  };

  // Replaces the content by that of the selected workload.
  const build = () => {
    for (const place of document.querySelectorAll("[data-charts]")) {
      place.querySelectorAll(".canvas").forEach((canvas) => Plotly.purge(canvas));
      const id = place.dataset.charts;
      const views = charts[id].filter((view) => view.workload === null || view.workload === workload);
      const made = views.map((view) => element("div", { class: "view" }, ...view.plots.map((plot) => figure(id, plot)), details(id, view)));
      place.replaceChildren(...made, ...(views.length ? [] : [element("p", { class: "note" }, `Nothing of ${workload} here.`)]));
    }
    return redraw();
  };

  const redraw = async () => {
    const canvases = [...document.querySelectorAll(".canvas")];
    await Promise.all(canvases.map((canvas) => draw(canvas, canvas.plot)));
    document.documentElement.dataset.state = "drawn";
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
      const mark = element("span", { class: "mark", "aria-hidden": "true", "data-entry": place }, GLYPHS[place % GLYPHS.length]);
      return drawn.has(place) ? [chip("entry", place, name, [mark])] : [];
    };
    const ofRuns = runs.length > 1 ? runs.map((name, place) => chip("run", place, name, [])) : [];
    bar.append(element("div", { class: "chips", role: "group", "aria-label": "Shown in the charts" }, ...ofRuns, ...entries.flatMap(ofMember)));
    bar.hidden = false;
  };

  const paintMarks = () => {
    const colours = theme();
    document.querySelectorAll("[data-entry]").forEach((mark) => (mark.style.color = colourOf(Number(mark.dataset.entry), colours)));
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
  toolbar();
  build().then(paintMarks);
})();
