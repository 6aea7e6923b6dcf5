/* The questions that are left: filters by words and numbers, what is measured over them, and a table of which only the visible rows exist. */
import { h, per100, select, swatch, term } from "./dom.js";
import { hop, hops, relation } from "./state.js";
import { change, isHit, measured } from "./select.js";

const ROW = 34; // pixels, as in style.css
const MOST = 6; // arms with a column
const SPARE = 8; // rows above and below those that are seen

/* What is set by words and numbers; all else by a click (`facets`). */
export function filters(data, state, go) {
  const hit = (arm) => (state.hit.includes(arm) ? "hit" : state.miss.includes(arm) ? "miss" : "");
  const setHit = (arm, value) => go({
    hit: [...state.hit.filter((one) => one !== arm), ...(value === "hit" ? [arm] : [])],
    miss: [...state.miss.filter((one) => one !== arm), ...(value === "miss" ? [arm] : [])],
  });
  const { a, b } = state;
  const number = (label, key, min, max) => h("label", {}, h("span", {}, label), h("input", { type: "number", min, max,
    value: state[key], input: (event) => go({ [key]: Math.min(max, Math.max(min, Math.trunc(event.target.valueAsNumber) || min)) }, true) }));
  return h("form", { class: "filters", submit: (event) => event.preventDefault() },
    h("label", { class: "find" }, h("span", {}, "Search questions, answers, ids"), h("input", { type: "search", id: "find",
      value: state.find, autocomplete: "off", input: (event) => go({ find: event.target.value }, true) })),
    a !== b && h("div", { class: "buttons" }, [[a, b], [b, a]].map(([right, wrong]) => h("button", { type: "button",
      click: () => go({ hit: [right], miss: [wrong] }) }, `${right} right, ${wrong} wrong`))),
    data.arms.map((arm) => select(arm, [["", "right or wrong"], ["hit", "right"], ["miss", "wrong"]], hit(arm), (value) => setHit(arm, value))),
    number("Right: a hit among the first", "k", 1, data.deepest),
    number(`Change of at least`, "change", 0, data.deepest));
}

export function measures(data, state, rows, open) {
  const all = data.sets[state.set].length;
  const metrics = Object.keys(data.metrics).filter((metric) => data.arms.some((_, a) => /^(top|mrr)/.test(metric)
    || data.values[metric]?.[a]?.[1].some(Boolean)));
  const note = data.rows.some((row) => data.overview[state.set].trainings[row] > 1)
    ? " Of an arm with several trainings, one is shown here; the overview has their mean." : "";
  return [
    h("p", { id: "left", role: "status", tabindex: -1 }, h("strong", {}, rows.length.toLocaleString("en")),
      ` of ${all.toLocaleString("en")} questions left.${note}`),
    h("details", { open }, h("summary", {}, "Measures of these"), h("table", { class: "means", id: "measures", role: "table" },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, h("th", { scope: "col", role: "columnheader" }, "% of these"),
        metrics.map((metric) => h("th", { scope: "col", role: "columnheader" }, term(data.metrics[metric][0].replace(/-(?=\d)/, "\u2011"), data.metrics[metric][1]))))),
      h("tbody", { role: "rowgroup" }, data.arms.map((arm) => {
        const found = measured(data, rows, arm);
        return h("tr", { role: "row" }, h("th", { scope: "row", role: "rowheader" }, swatch(data, arm), name(data, arm)),
          metrics.map((metric) => h("td", { role: "cell", "data-title": data.metrics[metric][0] }, per100(found[metric]))));
      })))),
  ];
}

function name(data, arm) {
  const said = data.descriptions[data.arms.indexOf(arm)];
  return said ? term(arm, said) : arm;
}

/* With many arms, of which a screen shows the two compared. */
export function columns(data, state, arms = data.arms.length > MOST ? [...new Set([state.a, state.b])] : data.arms) {
  const shown = [["question", "Question", (i) => data.questions[i]], ["type", "Type", (i) => data.types[i]]];
  if (data.relations.some(Boolean)) shown.push(["relation", "Relation", (i) => relation(data, i)]);
  if (hops(data).length) shown.push(["hop", "Hops", (i) => hop(data, i)]);
  arms.forEach((arm) => {
    const ranks = data.first[data.arms.indexOf(arm)];
    shown.push([`rank ${arm}`, arm, (i) => ranks[i] || null]);
  });
  shown.push(["change", `${state.a} over ${state.b}`, (i) => change(data, state, i)]);
  return shown;
}

/* A table that scrolls with the page; `fill` draws anew the rows that are seen. */
export class QuestionTable {
  constructor(data, go) {
    Object.assign(this, { data, go, rows: [], active: 0, top: 0 });
    this.body = h("tbody");
    this.head = h("thead");
    this.element = h("table", { class: "questions" }, h("caption", { class: "unseen" }, "Questions, and at which rank each arm has its first hit"), this.head, this.body);
    addEventListener("scroll", () => this.element.isConnected && this.fill());
  }

  show(state, rows) {
    const same = this.state?.set === state.set && this.rows.length === rows.length && this.rows.every((row, i) => row === rows[i]);
    Object.assign(this, { state, rows, columns: columns(this.data, state) });
    if (!same) this.active = 0;
    const focused = [...this.head.querySelectorAll("button")].indexOf(document.activeElement);
    this.element.setAttribute("aria-rowcount", rows.length + 1);
    this.head.replaceChildren(h("tr", { "aria-rowindex": 1 }, this.columns.map(([key, title]) => {
      const sorted = state.sort === key ? (state.down ? "descending" : "ascending") : null;
      const turn = () => this.go(sorted ? { down: !state.down } : { sort: key, down: key === "change" });
      return h("th", { scope: "col", class: kind(key, this.state), "aria-sort": sorted },
        h("button", { type: "button", click: turn }, breakable(title), sorted ? h("span", { "aria-hidden": "true" }, state.down ? " ↓" : " ↑") : ""));
    })));
    this.head.querySelectorAll("button")[focused]?.focus();
    this.fill();
  }

  fill() {
    const above = -this.body.getBoundingClientRect().top / ROW;
    const start = Math.max(0, Math.min(Math.floor(above) - SPARE, this.rows.length));
    const end = Math.min(this.rows.length, Math.max(0, Math.ceil(above + innerHeight / ROW) + SPARE));
    const focused = this.body.contains(document.activeElement) && document.activeElement.closest("tr").getAttribute("aria-rowindex");
    const space = (count) => h("tr", { class: "space", "aria-hidden": "true" }, this.sized(h("td"), count * ROW));
    this.body.replaceChildren(space(start), ...this.rows.slice(start, end).map((i, n) => this.row(i, start + n)), space(this.rows.length - end));
    if (!this.rows.length) this.body.replaceChildren(h("tr", {}, h("td", { colspan: 3 }, "No question fits all of this. Clear a filter.")));
    if (focused) this.body.querySelector(`[aria-rowindex="${focused}"] .link`)?.focus({ preventScroll: true });
  }

  sized(element, height) {
    element.style.height = `${height}px`;
    return element;
  }

  row(i, n) {
    const open = () => {
      this.active = n;
      this.go({ question: this.data.ids[i] });
    };
    return h("tr", { "aria-rowindex": n + 2, class: n === this.active ? "active" : "", click: open }, this.columns.map(([key, , of]) => {
      const value = of(i);
      if (key === "question") return h("td", { class: "question" }, h("button", { type: "button", class: "link", title: value }, value));
      const shown = kind(key, this.state);
      if (key === "change") return h("td", { class: value > 0 ? "number up" : value < 0 ? "number down" : "number" }, value > 0 ? `▲ ${value}` : value < 0 ? `▼ ${-value}` : "0");
      if (key.startsWith("rank ")) return h("td", { class: isHit(value, this.state.k) ? `${shown} right` : shown }, value === null ? "–" : `${isHit(value, this.state.k) ? "✓ " : ""}${value}`);
      return h("td", { class: shown, title: value }, value);
    }));
  }

  move(by) {
    this.active = Math.max(0, Math.min(this.rows.length - 1, this.active + by));
    const top = this.body.getBoundingClientRect().top + this.active * ROW;
    if (top < 3 * ROW) scrollBy(0, top - 3 * ROW);
    if (top + 3 * ROW > innerHeight) scrollBy(0, top + 3 * ROW - innerHeight);
    this.fill();
    this.body.querySelector(".active .link")?.focus({ preventScroll: true });
  }
}

/* Long names of arms break where they are joined. */
function breakable(name) {
  return name.split(/(?<=\+)/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));
}

/* Of many columns, a narrow screen shows those of the two arms compared. */
function kind(key, { a, b }) {
  if (key === "question") return "question";
  if (["type", "relation", "hop"].includes(key)) return `kind ${key}`;
  return key === "change" || [`rank ${a}`, `rank ${b}`].includes(key) ? "number" : "number other";
}
