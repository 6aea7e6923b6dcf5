/* The overview of a question set. */
import { h, per100, signed, term } from "./dom.js";
import { FIXED } from "./state.js";

export function overview(data, state, go) {
  const of = data.overview[state.set];
  return [
    h("h2", {}, `${state.set}: ${data.sets[state.set].length.toLocaleString("en")} questions`),
    means(data, of),
    [...data.notes.collection, ...data.notes.sets[state.set]].map(note),
    h("p", { class: "next" }, h("button", { type: "button", class: "main",
      click: () => go({ view: "questions", hit: [state.a], miss: [state.b], k: 1 }) },
    `Questions that ${state.a} gets right and ${state.b} does not`)),
    h("details", {}, h("summary", {}, "What these figures rest on, and what was left out"),
      h("pre", { class: "wide", tabindex: 0, role: "region", "aria-label": "Counts" }, data.notes.counts)),
  ];
}

/* A sentence of the report, whose commands stand between backticks and what matters between two stars. */
function note(text) {
  return h("p", { class: "note" }, text.split(/(`[^`]*`|\*\*[^*]*\*\*)/).map((part) =>
    part.startsWith("`") ? h("code", {}, part.slice(1, -1)) : part.startsWith("**") ? h("strong", {}, part.slice(2, -2)) : part));
}

export function meansTable(data, of) {
  const parts = ["", "_low", "_high"];
  const rows = data.rows.map((row) => [row, ...Object.keys(data.metrics).flatMap((metric) => parts.map((_, i) => of.means[row][metric]?.[i]))]);
  return [["arm", ...Object.keys(data.metrics).flatMap((metric) => parts.map((part) => metric + part))], rows];
}

function means(data, of) {
  const apart = new Map(of.differences.map((one) => [one.row, one]));
  const name = (row) => [row, of.trainings[row] > 1 && h("small", {}, `mean of ${of.trainings[row]} trainings`),
    apart.has(row) && h("small", {}, `against ${apart.get(row).with}`)];
  const head = h("tr", {}, h("th", { scope: "col" }, "%"), data.rows.map((row) => h("th", { scope: "col" }, name(row))));
  const cell = (row, metric) => {
    const found = of.means[row][metric];
    if (!found) return h("td", {}, "–");
    return h("td", {}, h("div", {}, h("b", {}, per100(found[0])), " ", h("small", {}, `${per100(found[1])}–${per100(found[2])}`)),
      compared(apart.get(row)?.metrics[metric], metric.startsWith("placebo")));
  };
  const body = Object.entries(data.metrics).map(([metric, [title, said]]) => h("tr", {}, h("th", { scope: "row" }, term(title, said)),
    data.rows.map((row) => cell(row, metric))));
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Measures of every arm" },
    h("table", { class: "means" }, h("thead", {}, head), h("tbody", {}, body)),
    h("p", { class: "soft" }, `Per cent with ${100 * data.confidence} % intervals; beneath it the difference in percentage points to what the arm`
      + ` is compared with. ▲ and ▼: its interval is on one side of 0, each alone, without a correction for how many there are.`
      + `${trainings(data, of)} Each measure explains itself on hover or focus.`));
}

function trainings(data, of) {
  const { trainings: count, differences } = of;
  const single = data.rows.some((row) => !FIXED.includes(row) && count[row] === 1);
  const unpaired = differences.some(({ row, with: other }) => ![row, other].some((one) => FIXED.includes(one)) && count[row] !== count[other]);
  return single || unpaired ? " Where an arm has one training, or another number than the arm it is compared with, the interval is over"
    + " questions alone: it, ▲ and ▼ say nothing of other trainings." : "";
}

function compared(found, neither) { // better nor worse: a placebo rate
  if (!found) return "";
  const [estimate, low, high] = found;
  const kind = low > 0 ? "up" : high < 0 ? "down" : "level";
  const arrow = { up: "▲ ", down: "▼ ", level: "" }[kind];
  return h("div", { class: `difference ${neither ? "level" : kind}` }, `${arrow}${signed(100 * estimate)} `,
    h("small", {}, `${signed(100 * low)} to ${signed(100 * high)}`));
}
