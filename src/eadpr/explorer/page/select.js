/* Which questions are left, in which order, and what is measured over them. Pure functions of data and state. */
import { bin, hop, relation } from "./state.js";

export function isHit(rank, k) {
  return rank > 0 && rank <= k;
}

/* How many places higher the first arm's first hit stands; one that is not found stands after all. */
export function change(data, state, i) {
  const [a, b] = [state.a, state.b].map((arm) => data.first[data.arms.indexOf(arm)][i] || data.deepest + 1);
  return b - a;
}

export function left(data, state) {
  const words = state.find.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = [[state.hit, true], [state.miss, false]];
  const asked = wanted.flatMap(([arms, hit]) => arms.map((arm) => [data.first[data.arms.indexOf(arm)], hit]));
  const [a, b] = [state.a, state.b].map((arm) => data.first[data.arms.indexOf(arm)]);
  const fits = (i) => words.every((word) => data.searchable[i].includes(word))
    && (!state.type || data.types[i] === state.type)
    && (!state.relation || data.relations[i] === state.relation)
    && (!state.hop || hop(data, i) === state.hop)
    && (!state.cell || state.cell === `${bin(data, a[i])}-${bin(data, b[i])}`)
    && asked.every(([ranks, hit]) => isHit(ranks[i], state.k) === hit)
    && (!state.change || Math.abs(change(data, state, i)) >= state.change);
  return sorted(data, state, data.sets[state.set].filter(fits));
}

function sorted(data, state, rows) {
  if (state.sort === "order" && !state.down) return rows;
  const [kind, arm] = state.sort.split(/ (.*)/);
  const ranks = data.first[data.arms.indexOf(arm)];
  const key = {
    order: (i) => i,
    question: (i) => data.questions[i].toLowerCase(),
    type: (i) => data.types[i],
    relation: (i) => relation(data, i),
    hop: (i) => hop(data, i),
    change: (i) => change(data, state, i),
    rank: (i) => ranks[i] || data.deepest + 1,
  }[kind];
  const keys = new Map(rows.map((i) => [i, key(i)]));
  const sign = state.down ? -1 : 1;
  return [...rows].sort((i, j) => {
    const [one, other] = [keys.get(i), keys.get(j)];
    return (one < other ? -sign : one > other ? sign : 0) || i - j;
  });
}

/* Shares over the questions of `rows` by metric: from the rank of the first hit where it is known that deep, or the
   means of what was measured. */
export function measured(data, rows, arm) {
  const a = data.arms.indexOf(arm);
  const ranks = data.first[a];
  return Object.fromEntries(Object.keys(data.metrics).map((metric) => {
    const [, kind, cut] = metric.match(/^(\D*?)_?(\d*)$/);
    const over = (value) => (rows.length ? rows.reduce((sum, i) => sum + value(ranks[i]), 0) / rows.length : NaN);
    if (kind === "top" && cut <= data.deepest) return [metric, over((rank) => Number(isHit(rank, Number(cut))))];
    if (kind === "mrr" && cut <= data.deepest) return [metric, over((rank) => (isHit(rank, Number(cut)) ? 1 / rank : 0))];
    const [sums, counts] = data.values[metric]?.[a] || [[], []];
    const total = rows.reduce((sum, i) => sum + (counts[i] || 0), 0);
    return [metric, total ? rows.reduce((sum, i) => sum + (sums[i] || 0), 0) / total : NaN];
  }));
}
