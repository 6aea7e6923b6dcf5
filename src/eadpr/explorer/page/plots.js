/* Small SVG plots. Arms differ by colour and by dash or sign, and every plot says in words what it shows. */
import { h, s } from "./dom.js";

const W = 460, H = 240, LEFT = 44, RIGHT = 10, TOP = 10, BOTTOM = 38;
const SIGNS = ["M-4-4h8v8h-8z", "M0-5 5 4H-5z", "M0-5.5 5.5 0 0 5.5-5.5 0z", "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0"];

export function sign(arm) {
  return s("path", { d: SIGNS[arm % SIGNS.length], class: `sign arm${arm % 7}` });
}

export function legend(rows) {
  return h("ul", { class: "legend" }, rows.map((row, i) => h("li", {},
    s("svg", { viewBox: "-20 -8 40 16", width: 40, height: 16, "aria-hidden": "true" },
      s("line", { x1: -19, x2: 19, y1: 0, y2: 0, class: `line arm${i % 7}` }), sign(i)), row)));
}

export function figure(title, said, drawing, ...more) {
  return h("figure", {}, h("figcaption", {}, h("strong", {}, title), " ", said), drawing, ...more);
}

function scale([low, high], start, end, log) {
  const of = log ? Math.log : (value) => value;
  return (value) => start + ((of(value) - of(low)) / (of(high) - of(low) || 1)) * (end - start);
}

function round(value) {
  return Math.round(value * 10) / 10;
}

/* `series`: by row its points; `x` and `y`: domain, ticks, label, log. Steps are drawn for points that are bins. */
export function lines(label, series, x, y, steps = false) {
  const px = scale(x.domain, LEFT, W - RIGHT, x.log), py = scale(y.domain, H - BOTTOM, TOP);
  const frame = [
    ...y.ticks.map((tick) => [s("line", { x1: LEFT, x2: W - RIGHT, y1: py(tick), y2: py(tick), class: "grid" }),
      s("text", { x: LEFT - 6, y: py(tick) + 4, class: "end" }, `${tick}`)]),
    ...x.ticks.map((tick) => s("text", { x: px(tick), y: H - BOTTOM + 15, class: "middle" }, `${tick}`)),
    s("text", { x: (LEFT + W) / 2, y: H - 5, class: "middle soft" }, x.label),
    s("text", { x: 11, y: (H - BOTTOM) / 2, class: "middle soft", transform: `rotate(-90 11 ${(H - BOTTOM) / 2})` }, y.label),
    x.zero && s("line", { x1: px(0), x2: px(0), y1: TOP, y2: H - BOTTOM, class: "zero" }),
  ];
  const curves = series.map(([arm, points]) => {
    const at = points.map(([of, value]) => [round(px(of)), round(py(value))]);
    const path = at.map(([left, top], i) => (steps && i ? `H${left}V${top}` : `${i ? "L" : "M"}${left} ${top}`)).join("");
    return s("path", { d: path, class: `line arm${arm % 7}` });
  });
  return s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label }, frame.flat(2), curves);
}

/* Shares by group, a panel for each of `panels`: [title, rows of (group, arm, share)]. */
export function dots(label, groups, panels) {
  const width = 128, row = 26, height = TOP + 16 + groups.length * row + 24;
  return s("svg", { viewBox: `0 0 ${LEFT + panels.length * (width + 12)} ${height}`, role: "img", "aria-label": label },
    groups.map((group, i) => s("text", { x: LEFT - 6, y: TOP + 33 + i * row, class: "end" }, group)),
    panels.map(([title, points], panel) => {
      const start = LEFT + 6 + panel * (width + 12), px = scale([0, 100], start, start + width - 8);
      return [
        s("text", { x: start + width / 2, y: TOP + 4, class: "middle strong" }, title),
        [0, 50, 100].map((tick) => [
          s("line", { x1: px(tick), x2: px(tick), y1: TOP + 14, y2: height - 22, class: tick === 50 ? "zero" : "grid" }),
          s("text", { x: px(tick), y: height - 6, class: "middle" }, `${tick}`)]),
        points.map(([group, arm, share]) => s("g",
          { transform: `translate(${round(px(100 * share))} ${TOP + 29 + groups.indexOf(group) * row})` }, sign(arm))),
      ];
    }).flat(3));
}
