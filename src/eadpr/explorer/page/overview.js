/* The overview of a question set. */
import { h, per100, signed, term } from "./dom.js";
import { dots, figure, legend, lines } from "./plots.js";

const FEW = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const BY_TYPE = ["aa", "placebo_words", "controlled_aa"];
const BM25 = "bm25"; // is not trained

export function overview(data, state, go) {
  const of = data.overview[state.set];
  return [
    h("h2", {}, `${state.set}: ${data.sets[state.set].length.toLocaleString("en")} questions`),
    means(data, of),
    [...data.notes.collection, ...data.notes.sets[state.set]].map(note),
    h("p", { class: "next" }, h("button", { type: "button", class: "main",
      click: () => go({ view: "questions", hit: [state.a], miss: [state.b], k: 1 }) },
    `Questions that ${state.a} gets right and ${state.b} does not`)),
    legend(data.rows),
    h("div", { class: "plots" }, plots(data, of)),
    h("details", {}, h("summary", {}, "What these figures rest on, and what was left out"), counts(data, of)),
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
  const single = data.rows.some((row) => row !== BM25 && count[row] === 1);
  const unpaired = differences.some(({ row, with: other }) => ![row, other].includes(BM25) && count[row] !== count[other]);
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

function series(data, curves, points) {
  return data.rows.map((row, arm) => [arm, curves[row]]).filter(([, of]) => of?.length).map(([arm, of]) => [arm, points(of)]);
}

function plots(data, of) {
  const made = [];
  const deepest = Math.max(...Object.values(of.topk).map(([shares]) => shares.length));
  const low = Math.floor(Math.min(...Object.values(of.topk).map(([shares]) => shares[0])) * 10) * 10;
  const ticks = [0, 20, 40, 60, 80, 100].filter((tick) => tick >= low);
  made.push(figure("Found among the first k.", "Share of questions with a passage that holds an answer among the first k passages.",
    lines("Top-k accuracy of every arm; the table above has its values",
      series(data, of.topk, ([shares]) => shares.map((share, i) => [i + 1, 100 * share])),
      { domain: [1, deepest], ticks: FEW.filter((k) => k <= deepest), label: "k (passages)", log: true },
      { domain: [low, 100], ticks, label: "questions (%)" })));
  if (of.types.length) made.push(byType(data, of));
  for (const [metric, [title, meaning]] of Object.entries(data.behind)) {
    if (of.scores[metric]) made.push(scores(data, of.scores[metric], `Scores behind ${title}.`, `${meaning} These pairs lie right of the dotted line.`));
  }
  const trained = series(data, data.losses, (points) => points);
  if (trained.length) {
    const steps = Math.max(...trained.map(([, points]) => points[points.length - 1][0]));
    const highest = Math.ceil(Math.max(...trained.map(([, points]) => points[0][1])));
    made.push(figure("Training loss.", "Each arm learns with an objective of its own, so heights do not compare; whether a curve has settled does.",
      lines("Mean training loss of every arm by step", trained,
        { domain: [0, steps], ticks: [0, Math.round(steps / 2), steps], label: "step" },
        { domain: [0, highest], ticks: [0, highest / 2, highest], label: "loss (nats)" })));
  }
  return made;
}

function byType(data, of) {
  const groups = [...new Set(of.types.map(([group]) => group))];
  const panels = BY_TYPE.filter((metric) => of.types.some((one) => one[2] === metric)).map((metric) => [
    data.metrics[metric]?.[0] || metric.replace("_", " "),
    of.types.filter((one) => one[2] === metric).map(([group, arm, , share]) => [group, data.rows.indexOf(arm), share])]);
  const arms = data.rows.filter((row) => of.types.some((one) => one[1] === row));
  const rows = groups.flatMap((group) => arms.map((arm) => h("tr", {}, h("th", { scope: "row" }, `${group}, ${arm}`),
    BY_TYPE.map((metric) => h("td", {}, per100(of.types.find((one) => one[0] === group && one[1] === arm && one[2] === metric)?.[3] ?? null))))));
  return figure("Answer awareness by type of question.",
    "The table above explains these measures. The dotted line is chance.",
    dots("Answer awareness, placebo and controlled awareness by question type; the numbers stand below", groups, panels),
    h("details", {}, h("summary", {}, "Numbers"), h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "%"),
      panels.map(([title]) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows))));
}

function scores(data, found, title, said) {
  const points = ([lows, , shares]) => [...lows.map((low, i) => [low, 100 * shares[i]]), [lows[lows.length - 1], 0]];
  const all = Object.values(found);
  const domain = [Math.min(...all.map(([lows]) => lows[0])), Math.max(...all.map(([, highs]) => highs[highs.length - 1]))];
  const highest = Math.ceil(Math.max(...all.flatMap(([, , shares]) => shares)) * 10) * 10;
  const step = 10 ** Math.floor(Math.log10(domain[1] - domain[0])) / 2 || 1;
  const ticks = [];
  for (let tick = Math.ceil(domain[0] / step) * step; tick <= domain[1]; tick += step) ticks.push(tick);
  return figure(title, said,
    lines(`${title} Share of pairs by difference of scores, for every arm`, series(data, found, points),
      { domain, ticks: ticks.filter((_, i) => i % Math.ceil(ticks.length / 7) === 0), label: "difference of scores", zero: true },
      { domain: [0, highest], ticks: [0, highest / 2, highest], label: "pairs (%)" }, true));
}

function counts(data, of) {
  const number = (value) => (value === null ? "–" : value.toLocaleString("en", { maximumFractionDigits: 2 }));
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Counts" }, h("table", { class: "counts" },
    h("thead", {}, h("tr", {}, ["counted", ...data.rows, "what it means"].map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, of.counts.map(([what, meaning, values]) => h("tr", {}, h("th", { scope: "row" }, what),
      values.map((value) => h("td", {}, number(value))), h("td", { class: "words" }, meaning))))));
}
