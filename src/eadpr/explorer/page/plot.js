/* How many questions have a hit among the first k, by arm. */
import { h, per100, s, series, swatch } from "./dom.js";

const SIZE = { width: 560, height: 300, left: 34, right: 14, top: 8, bottom: 34 };
const TICKS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

export function topK(data, state) {
  const rows = data.sets[state.set];
  const { width, height, left, right, top, bottom } = SIZE;
  const x = (k) => left + ((width - left - right) * Math.log(k)) / Math.log(Math.max(data.deepest, 2));
  const y = (share) => top + (height - top - bottom) * (1 - share);
  const ticks = TICKS.filter((k) => k <= data.deepest);
  const curves = data.first.map((ranks) => curve(ranks, rows, data.deepest));
  const said = data.rows.map((row, i) => `${row} ${ticks.map((k) => `${per100(curves[i][k - 1])} at ${k}`).join(", ")}`).join("; ");
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => [s("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }),
    s("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, 100 * share)]);
  const marks = ticks.map((k) => s("text", { x: x(k), y: height - bottom + 16, "text-anchor": "middle" }, k));
  const lines = curves.map((shares, i) => s("polyline", { class: `line ${series(data, data.rows[i])}`, points: shares.map((share, n) => `${x(n + 1).toFixed(1)},${y(share).toFixed(1)}`).join(" ") }));
  return h("figure", { class: "plot" }, h("figcaption", {}, "Questions with a hit among the first k (%)"),
    s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said }, grid, marks,
      s("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "k"), lines),
    h("p", { class: "legend" }, data.rows.map((row) => [h("span", {}, swatch(data, row), row), " "])));
}

/* Shares at k = 1 ... deepest; rank 0 stands for no hit. */
export function curve(ranks, rows, deepest) {
  const at = new Array(deepest + 1).fill(0);
  for (const i of rows) if (ranks[i] > 0 && ranks[i] <= deepest) at[ranks[i]] += 1;
  let sum = 0;
  return at.slice(1).map((count) => (sum += count) / rows.length);
}
