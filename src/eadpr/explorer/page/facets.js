/* Filters by a click: won and lost questions of each type, hop and relation, rank against rank, and what is filtered. */
import { h, s } from "./dom.js";
import { bin, bins, first, hop } from "./state.js";
import { isHit, left } from "./select.js";

const KINDS = [["type", "Type", (data, i) => data.types[i], (name) => name], ["hop", "Hops", hop, (name) => name],
  ["relation", "Relation", (data, i) => data.relations[i], (name, data) => data.relationNames[name] || name]];

export function facets(data, state, go) {
  return h("div", { class: "facets" }, ranks(data, state, go), KINDS.map((kind) => bars(data, state, go, ...kind)));
}

/* Groups in the order of their size in the set, so that a filter moves none. Counts are under all other filters. */
function bars(data, state, go, key, title, of, named) {
  const groups = new Map();
  for (const i of data.sets[state.set]) if (of(data, i)) groups.set(of(data, i), { all: (groups.get(of(data, i))?.all || 0) + 1, left: 0, won: 0, lost: 0 });
  if ([...groups.values()].every(({ all }) => all === data.sets[state.set].length)) return null;
  const [a, b] = [state.a, state.b].map((arm) => data.first[data.arms.indexOf(arm)]);
  for (const i of left(data, { ...state, [key]: "" })) {
    const group = groups.get(of(data, i));
    if (!group) continue;
    const [hit, other] = [isHit(a[i], state.k), isHit(b[i], state.k)];
    group.left += 1;
    if (hit && !other) group.won += 1;
    if (!hit && other) group.lost += 1;
  }
  const most = Math.max(1, ...[...groups.values()].flatMap(({ won, lost }) => [won, lost]));
  const row = ([name, { left: count, won, lost }]) => {
    const pressed = state[key] === name;
    const [wide, narrow] = [won, lost].map((n) => (50 * n) / most);
    return h("li", {}, h("button", { type: "button", class: "facet", "aria-pressed": String(pressed), click: () => go({ [key]: pressed ? "" : name }) },
      h("span", { class: "name" }, named(name, data)),
      h("span", { class: "number" }, `+${won} −${lost}`, h("span", { class: "unseen" }, ` of ${count}`)),
      s("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
        s("rect", { class: "lost", x: 50 - narrow, y: 0, width: narrow, height: 8 }), s("rect", { class: "won", x: 50, y: 0, width: wide, height: 8 }))));
  };
  const rows = [...groups].sort(([, one], [, other]) => other.all - one.all).map(row);
  const more = rows.splice(state[key] ? rows.length : 10);
  return h("section", {}, h("h3", {}, title), h("p", { class: "soft" }, `+ only ${state.a} right, − only ${state.b} right`), h("ul", {}, rows),
    more.length > 0 && h("details", {}, h("summary", {}, `${more.length} more`), h("ul", {}, more)));
}

function ranks(data, state, go) {
  const names = bins(data);
  const counts = names.map(() => names.map(() => 0));
  const [a, b] = [state.a, state.b].map((arm) => data.first[data.arms.indexOf(arm)]);
  for (const i of left(data, { ...state, cell: "" })) counts[bin(data, a[i])][bin(data, b[i])] += 1;
  const most = Math.log1p(Math.max(1, ...counts.flat()));
  const cell = (n, i, j) => {
    const name = `${i}-${j}`;
    const kind = `cell shade${Math.ceil((4 * Math.log1p(n)) / most)} ${i < j ? "up" : i > j ? "down" : ""}`;
    const said = `${n} with ${state.a} at ${names[i]}, ${state.b} at ${names[j]}`;
    return h("td", {}, n > 0 || state.cell === name ? h("button", { type: "button", class: kind, "aria-label": said, title: said,
      "aria-pressed": String(state.cell === name), click: () => go({ cell: state.cell === name ? "" : name }) }, n) : "");
  };
  return h("section", {}, h("h3", {}, "Rank against rank"), h("table", { class: "grid" },
    h("caption", {}, `Down: the first hit of ${state.a}; across: of ${state.b}`),
    h("thead", {}, h("tr", {}, h("td"), names.map((name) => h("th", { scope: "col" }, name.replace(/^.*–/, "≤").replace("none", "–"))))),
    h("tbody", {}, counts.map((row, i) => h("tr", {}, h("th", { scope: "row" }, names[i]), row.map((n, j) => cell(n, i, j)))))));
}

/* The filters in force, each with the number of questions that it alone leaves; a click takes it away. */
export function chips(data, state, go) {
  const { set, a, b, k } = state;
  const none = { ...first(data), set, a, b, k };
  const names = bins(data);
  const found = [
    state.find && [`“${state.find}”`, { find: "" }, { find: state.find }],
    ...KINDS.map(([key, , , named]) => state[key] && [named(state[key], data), { [key]: "" }, { [key]: state[key] }]),
    state.cell && [state.cell.split("-").map((n, i) => `${[a, b][i]} at ${names[n]}`).join(", "), { cell: "" }, { cell: state.cell }],
    state.change > 0 && [`change of ${state.change} or more`, { change: 0 }, { change: state.change }],
    ...["hit", "miss"].flatMap((key) => state[key].map((arm) => [`${arm} ${key === "hit" ? "right" : "wrong"}`,
      { [key]: state[key].filter((one) => one !== arm) }, { [key]: [arm] }])),
  ].filter(Boolean);
  return h("div", { class: "chips" }, found.map(([said, without, alone]) => h("button", { type: "button", class: "chip", click: () => go(without) },
    `${said}: ${left(data, { ...none, ...alone }).length.toLocaleString("en")} `, h("span", { "aria-hidden": "true" }, "×"), h("span", { class: "unseen" }, "; take this filter away"))),
  found.length > 0 && h("button", { type: "button", click: () => go({ find: "", type: "", relation: "", hop: "", cell: "", change: 0, hit: [], miss: [], k: 1 }) }, "Clear filters"));
}
