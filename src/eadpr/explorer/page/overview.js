/* The overview of a question set: what was found in a sentence, ranking and awareness of every arm, what it rests on. */
import { h, per100, signed, swatch, term } from "./dom.js";
import { loadQuestion } from "./data.js";
import { FIXED } from "./state.js";
import { left } from "./select.js";
import { explains } from "./question.js";
import { topK } from "./plot.js";

export function overview(data, state, go) {
  const of = data.overview[state.set];
  const questions = `${state.set}: ${data.sets[state.set].length.toLocaleString("en")} questions`;
  const [headline, ...more] = data.notes.headlines[state.set];
  const won = { view: "questions", hit: [state.a], miss: [state.b], k: 1 };
  const kinds = [false, true].map((aware) => Object.keys(data.metrics).filter((metric) => data.metrics[metric][2] === aware));
  return [
    h("h2", { id: "headline" }, headline || questions),
    more.length > 0 && h("p", {}, more.join(" ")),
    about(data, questions),
    h("div", { class: "beside" }, block(data, state, "Ranking", kinds[0]), topK(data, state)),
    kinds[1].length > 0 && block(data, state, "Answer awareness", kinds[1]),
    footnote(data, of),
    h("p", { class: "next" }, h("button", { type: "button", class: "main", click: () => go(won) },
      `Questions that ${state.a} gets right and ${state.b} does not`), " ",
    h("button", { type: "button", click: async () => go({ ...won, question: await example(data, { ...state, ...won }) }) }, "An example of these")),
    [...data.notes.collection, ...data.notes.sets[state.set]].map(note),
    h("details", {}, h("summary", {}, "What these figures rest on, and what was left out"),
      h("pre", { class: "wide", tabindex: 0, role: "region", "aria-label": "Counts" }, data.notes.counts)),
  ].filter(Boolean);
}

/* The first question left that the arm ranks right because of its evidence, else the first one. */
async function example(data, state) {
  const rows = left(data, state);
  for (const place of rows) {
    if (explains(await loadQuestion(data, place), data.arms.indexOf(state.a))) return data.ids[place];
  }
  return data.ids[rows[0]] || "";
}

function about(data, questions) {
  const { commit, date, edits = [], changed, bases, seeds } = data.about;
  const list = (title, settings) => settings.length > 0 && h("details", {}, h("summary", {}, `${title}: ${settings.length}`),
    h("ul", {}, settings.map((one) => h("li", {}, h("code", {}, one)))));
  return h("div", { class: "about soft" }, h("p", {}, [`${data.notes.passages.toLocaleString("en")} passages`, questions,
    `base model ${bases.join(", ")}`, `${seeds.length > 1 ? "seeds" : "seed"} ${seeds.join(", ")}`,
    commit ? `commit ${commit} of ${date}` : "no commit"].join(" · ")),
  list("Settings that differ from the commit", edits), list("Settings that differ from the defaults", changed || []));
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

/* Roles are named, as a narrow screen shows rows as blocks, which takes them from a table. */
function block(data, state, title, metrics) {
  const of = data.overview[state.set];
  const apart = (row) => of.differences.filter((one) => one.row === row);
  const rows = data.rows.filter((row) => metrics.some((metric) => of.means[row][metric]));
  const cell = (row, metric) => {
    const [name] = data.metrics[metric];
    const found = of.means[row][metric];
    if (!found) return h("td", { role: "cell", "data-title": name }, "–");
    return h("td", { role: "cell", "data-title": name }, h("div", {}, h("b", {}, per100(found[0])), " ", h("small", {}, `${per100(found[1])}–${per100(found[2])}`)),
      apart(row).map(({ with: other, metrics: by }, _, all) =>
        compared(by[metric], metric.startsWith("placebo"), all.length > 1 && `against ${other}`)));
  };
  return h("section", { "aria-label": title },
    h("table", { class: "means", role: "table" }, h("caption", {}, title),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, h("th", { scope: "col", role: "columnheader" }, "%"),
        metrics.map((metric) => h("th", { scope: "col", role: "columnheader" }, term(...data.metrics[metric]))))),
      h("tbody", { role: "rowgroup" }, rows.map((row) => h("tr", { role: "row", class: row === state.a ? "chosen" : "" },
        h("th", { scope: "row", role: "rowheader" }, swatch(data, row), row,
          of.trainings[row] > 1 && h("small", {}, `mean of ${of.trainings[row]} trainings`),
          apart(row).map((one) => h("small", {}, `against ${one.with}`))),
        metrics.map((metric) => cell(row, metric)))))));
}

function footnote(data, of) {
  const sure = `${100 * data.confidence} %`;
  return h("p", { class: "soft", id: "footnote" }, `Large: per cent; beside it the ${sure} interval. Beneath: how many points more or less than the arm`
    + ` named under its own name. ▲ more, ▼ less, each with ${sure} confidence: the interval is on one side of 0. Where arms do not differ at all,`
    + ` about one in ${Math.round(1 / (1 - data.confidence))} such figures gets an arrow by chance.${trainings(data, of)}`
    + " Placebo rates are neither good nor bad. Each measure explains itself on hover or focus.");
}

function trainings(data, of) {
  const { trainings: count, differences } = of;
  const single = data.rows.some((row) => !FIXED.includes(row) && count[row] === 1);
  const unpaired = differences.some(({ row, with: other }) => ![row, other].some((one) => FIXED.includes(one)) && count[row] !== count[other]);
  return single || unpaired ? " Where an arm was trained once, or not as often as the arm it is compared with, the interval is about other"
    + " questions, not about another training: another seed can turn an arrow." : "";
}

function compared(found, neither, against) { // better nor worse: a placebo rate
  if (!found) return "";
  const [estimate, low, high] = found;
  const kind = low > 0 ? "up" : high < 0 ? "down" : "level";
  const arrow = { up: "▲ ", down: "▼ ", level: "" }[kind];
  return h("div", { class: `difference ${neither ? "level" : kind}` }, `${arrow}${signed(100 * estimate)} `,
    h("small", {}, `${signed(100 * low)} to ${signed(100 * high)}`), against && h("small", {}, ` ${against}`));
}
