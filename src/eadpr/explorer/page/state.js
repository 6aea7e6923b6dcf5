/* What is shown, as the fragment of the address has it. */

export const VIEWS = { overview: "Overview", questions: "Questions" };

export const FIXED = ["bm25", "untrained"]; // rows that no seed changes

export function first(data) {
  const set = Object.keys(data.sets)[0];
  const { differences } = data.overview[set];
  const shown = differences.filter((one) => data.arms.includes(one.row) && data.arms.includes(one.with));
  const compared = shown.find((one) => !FIXED.includes(one.with)) || shown[0]; // trained arms, if there are two
  const a = compared ? compared.row : data.arms[data.arms.length - 1];
  const b = compared ? compared.with : data.arms[0];
  return { view: "overview", question: "", set, a, b, k: 1, find: "", type: "", relation: "", hop: "", cell: "", change: 0,
    hit: [], miss: [], sort: "order", down: false };
}

export function written(state, data) {
  const usual = first(data);
  const pairs = [];
  for (const [key, value] of Object.entries(state)) {
    if (Array.isArray(value)) pairs.push(...value.map((one) => [key, one]));
    else if (value !== usual[key]) pairs.push([key, String(value)]);
  }
  return `#${new URLSearchParams(pairs)}`;
}

/* The state that a fragment names, and a line for each thing that is not there. */
export function read(fragment, data) {
  const state = first(data);
  const wrong = [];
  const cells = bins(data).flatMap((_, i) => bins(data).map((__, j) => `${i}-${j}`));
  const known = {
    view: Object.keys(VIEWS), set: Object.keys(data.sets), a: data.arms, b: data.arms, hit: data.arms, miss: data.arms,
    question: data.ids, type: data.types, relation: data.relations, hop: hops(data), cell: cells, sort: sortable(data),
  };
  for (const [key, value] of new URLSearchParams(fragment.replace(/^#/, ""))) {
    const number = Number(value);
    if (key === "find") state.find = value;
    else if (key === "down") state.down = value === "true";
    else if (key === "k" && Number.isInteger(number) && number >= 1 && number <= data.deepest) state.k = number;
    else if (key === "change" && Number.isInteger(number) && number >= 0) state.change = number;
    else if (!Object.hasOwn(known, key) || !known[key].includes(value)) wrong.push(`${key} “${value}” is not in this page`);
    else if (Array.isArray(state[key])) state[key] = [...state[key], value];
    else state[key] = value;
  }
  return { state, wrong };
}

const UPPERS = [1, 2, 5, 10, 20, 50];

/* Ranks in groups, the last without a hit, as they are named. */
export function bins(data) {
  const uppers = [...UPPERS.filter((upper) => upper < data.deepest), data.deepest];
  const from = (i) => (uppers[i - 1] || 0) + 1;
  return [...uppers.map((upper, i) => (from(i) < upper ? `${from(i)}–${upper}` : `${upper}`)), "none"];
}

export function bin(data, rank) {
  if (!rank || rank > data.deepest) return bins(data).length - 1;
  return UPPERS.filter((upper) => upper < data.deepest && upper < rank).length;
}

export function hops(data) {
  return [...new Set(data.ids.map((_, i) => hop(data, i)))].filter(Boolean).sort();
}

export function hop(data, i) {
  return data.hops[i] ? [`${data.hops[i]} hops`, data.hop_types[i]].filter(Boolean).join(", ") : data.hop_types[i] || "";
}

export function relation(data, i) {
  return data.relationNames[data.relations[i]] || "";
}

export function sortable(data) {
  return ["order", "question", "type", "relation", "hop", "change", ...data.arms.map((arm) => `rank ${arm}`)];
}
