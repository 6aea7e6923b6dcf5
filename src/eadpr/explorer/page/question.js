/* One question: two rankings side by side, lines between the places of the same passage, its positives and their forms. */
import { h, s, signed, term } from "./dom.js";
import { hop, relation } from "./state.js";

const MARKS = [["matched", "i", "the sentence that matches best"], ["answer", "b", "answer"], ["gold", "em", "gold evidence, marked by the source"], ["pseudo", "mark", null],
  ["removed", "s", "cut to make the distractor"], ["placebo", "u", "cut as the placebo"]];
const SHORT = 80;
const RISES = "Higher than the passage as it is: the arm makes one vector of the whole passage, so without these words the"
  + " rest counts for more, and to this arm the rest is nearer to the question.";

/* Text with elements around the spans; offsets count characters, of which some are two of JavaScript's. */
export function marked(text, spans) {
  const signs = Array.from(text);
  const edges = new Set([0, signs.length]);
  for (const flat of Object.values(spans)) flat.forEach((edge) => edges.add(Math.min(edge, signs.length)));
  const sorted = [...edges].sort((a, b) => a - b);
  return sorted.slice(0, -1).map((start, i) => {
    const within = (flat) => flat.some((from, n) => n % 2 === 0 && from <= start && start < flat[n + 1]);
    return MARKS.filter(([name]) => spans[name] && within(spans[name]))
      .reduce((inner, [name, tag]) => h(tag, { class: `mark ${name}` }, inner), signs.slice(start, sorted[i + 1]).join(""));
  });
}

/* In a ranking without what was cut, which would strike out much of what one wants to read there. */
function spansOf({ positive, answers }, cut = false) {
  if (!positive) return { answer: answers };
  const { gold, pseudo, removed } = positive;
  const placebo = removed.placebo || removed.placebo_words || [];
  return { answer: positive.answers, gold, pseudo, removed: (cut && removed.distractor) || [], placebo: cut ? placebo : [] };
}

export function question(data, state, place, found, go, around) {
  const { a, b } = state;
  const ranks = data.arms.map((arm) => `${arm} ${data.first[data.arms.indexOf(arm)][place] || `none in ${data.deepest}`}`).join(" · ");
  const about = [state.set, data.types[place], relation(data, place), hop(data, place), data.ids[place]].filter(Boolean);
  const answers = data.answers[place];
  return [
    h("div", { class: "bar" }, h("button", { type: "button", click: () => go({ question: "" }) }, "← Questions"),
      h("button", { type: "button", disabled: !around.before, click: () => go({ question: around.before }) }, "Previous"),
      h("button", { type: "button", disabled: !around.after, click: () => go({ question: around.after }) }, "Next"),
      h("span", {}, around.said),
      [["Show all texts", true], ["Hide all texts", false]].map(([words, open]) => h("button", { type: "button",
        click: () => document.querySelectorAll(".sides details").forEach((one) => (one.open = open)) }, words))),
    h("h2", { id: "heading", tabindex: -1 }, data.questions[place]),
    h("p", {}, answers.length ? [h("strong", {}, answers.length > 1 ? "Answers: " : "Answer: "), answers.join("; ")]
      : "No answer is given: passages are judged by what the source calls relevant.", h("span", { class: "soft" }, ` · ${about.join(" · ")}`)),
    h("p", {}, h("strong", {}, "Rank of the first hit: "), ranks),
    why(data, [...new Set([a, b])], found),
    sideBySide(data, a, b, found),
    h("h3", {}, found.positives.length > 1 ? "Positives, and what is left when something is cut" : "The positive, and what is left when something is cut"),
    legendOfMarks(data.evidence),
    found.positives.length ? found.positives.map((one) => positive(data, [a, b], one, found.passages.get(one.passage), found.positives.length > 1 && found.rankings))
      : h("p", {}, "Neither the source nor BM25 gives this question a positive passage, so nothing was cut."),
  ];
}

/* In ranks, which all arms share: where the first positive stands and what it owes to its evidence, and by which
   sentence a wrong passage stands before it. */
function why(data, arms, { positives, rankings }) {
  const one = positives.find(({ scores }) => scores.positive);
  const lines = arms.map((arm) => {
    const place = data.arms.indexOf(arm);
    const said = one && verdict(one, place, rankings[place]);
    const [best] = rankings[place];
    const wrong = best && !best.passage.hit && best.sentence.length > 0;
    return (said || wrong) && h("li", {}, h("strong", {}, arm), said && `: ${said}.`, wrong && [` ${said ? "" : ": "}First stands ${best.passage.id}, “${best.passage.title}”, which`
      + " holds no answer; its sentence that matches best: ", h("i", { class: "mark matched" }, Array.from(best.passage.text).slice(...best.sentence).join("").trim())]);
  }).filter(Boolean);
  return lines.length > 0 && h("div", { class: "why" }, h("h3", {}, "Why: the ranks of the positive"), h("ul", {}, lines));
}

/* `evidence` says what the mark without words of its own stands for. */
function legendOfMarks(evidence) {
  const badges = [["✓", "holds an answer"], ["★", "positive"], ["?", "holds an answer, but is no positive: perhaps a false negative"]];
  return h("p", { class: "marks" }, "Marks: ", MARKS.map(([name, tag, said]) => [h(tag, { class: `mark ${name}` }, said || evidence), " "]),
    badges.map(([sign, said]) => [h("span", { class: "badge", "aria-hidden": "true" }, sign), ` ${said} `]));
}

function badges({ hit, positive, relevant }) {
  const found = [];
  if (positive || relevant) found.push(["★", "positive"]);
  if (hit) found.push(["✓", "holds an answer"]);
  if (hit && !positive && !relevant) found.push(["?", "no positive"]);
  return found.map(([sign, said]) => h("span", { class: "badge", title: said }, h("span", { "aria-hidden": "true" }, sign), h("span", { class: "unseen" }, said)));
}

function sideBySide(data, a, b, found) {
  const rankings = [a, b].map((arm) => found.rankings[data.arms.indexOf(arm)]);
  const rankIn = rankings.map((ranking) => new Map(ranking.map((one) => [one.passage.number, one.rank])));
  const wires = s("svg", { class: "wires", "aria-hidden": "true" });
  const lists = rankings.map((ranking, side) => {
    const other = [b, a][side];
    const digits = digitsOf(ranking.map(({ score }) => score));
    const items = ranking.map(({ rank, score, sentence, passage }) => {
      const [start, end, ofSentence] = sentence;
      const there = rankIn[1 - side].get(passage.number);
      const light = (lit) => wires.querySelector(`[data-passage="${passage.number}"]`)?.classList.toggle("lit", lit);
      return h("li", { class: passage.hit ? "hit" : "", "data-passage": passage.number, mouseenter: () => light(true), mouseleave: () => light(false),
        focusin: () => light(true), focusout: () => light(false) },
      h("details", { open: rank === 1 }, h("summary", {}, h("span", { class: "rank" }, rank), " ",
        h("span", { class: "title" }, passage.title, " ", h("span", { class: "snippet" }, passage.text.slice(0, SHORT))), " ", badges(passage), " ",
        h("span", { class: "there" }, there ? `${other} ${there}` : `not in ${other}’s ${data.depth}`), " ", h("span", { class: "score" }, score.toFixed(digits))),
      h("p", { class: "text" }, marked(passage.text, { ...spansOf(passage), matched: sentence.length ? [start, end] : [] })),
      h("p", { class: "soft" }, passage.id, sentence.length > 0 && ` · the sentence that matches best: ${ofSentence.toFixed(digits)}`)));
    });
    const said = data.descriptions[data.arms.indexOf([a, b][side])];
    return h("div", { class: "ranking" }, h("h3", {}, [a, b][side]), said && h("p", { class: "soft" }, said),
      ranking.length ? h("ol", {}, items) : h("p", {}, `${[a, b][side]} has no ranking of this question.`));
  });
  const box = h("div", { class: "sides" }, lists[0], wires, lists[1]);
  new ResizeObserver(() => drawWires(box, wires)).observe(box);
  box.addEventListener("toggle", () => drawWires(box, wires), true);
  return box;
}

function drawWires(box, wires) {
  const { top, width } = wires.getBoundingClientRect();
  const at = [...box.querySelectorAll(".ranking")].map((list) => new Map([...list.querySelectorAll("li")].map((item) => {
    const line = item.querySelector("summary").getBoundingClientRect();
    return [item.dataset.passage, [line.top + line.height / 2 - top, item.className]];
  })));
  wires.replaceChildren(...[...at[0]].filter(([passage]) => at[1].has(passage)).map(([passage, [y1, kind]]) => {
    const [y2] = at[1].get(passage);
    return s("path", { d: `M0 ${y1}C${width / 2} ${y1} ${width / 2} ${y2} ${width} ${y2}`, class: kind || "other", "data-passage": passage });
  }));
}

function positive(data, arms, one, passage, rankings) {
  const forms = Object.keys(one.scores);
  const places = [...new Set(arms)].map((arm) => data.arms.indexOf(arm));
  const scored = places.filter((place) => forms.some((form) => one.scores[form][place] !== null));
  const base = one.scores.positive || [];
  const digits = digitsOf(base);
  const cell = (form, place) => {
    const score = one.scores[form][place];
    if (score === null) return "–";
    const apart = signed(score - base[place], digits);
    return [score.toFixed(digits), form !== "positive" && [" ", h("small", {}, score > base[place] ? term(apart, RISES) : apart)]];
  };
  return h("article", {}, h("h4", {}, passage.title || passage.id, one.given ? "" : " (found by BM25: the source names none)"),
    h("p", { class: "text" }, marked(passage.text, spansOf({ ...passage, positive: one }, true))),
    scored.length > 0 && h("table", { class: "forms" }, h("caption", {}, "Score of each form of this passage, and how far it is from the passage as it is"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "the passage"), scored.map((place) => h("th", { scope: "col" }, data.arms[place])), h("th", { scope: "col" }, "what is cut"))),
      h("tbody", {}, forms.map((form) => h("tr", {}, h("th", { scope: "row" }, data.forms[form] || form.replaceAll("_", " ")),
        scored.map((place) => h("td", {}, cell(form, place))), h("td", { class: "words" }, cutOf(form, one, passage.text))))),
      rankings && ranksOfForms(one, scored, rankings)));
}

/* Cosines are no larger than 1 and differ by less. */
function digitsOf(scores) {
  return scores.every((score) => Math.abs(score) <= 1.001) ? 4 : 2;
}

const VERDICT = { positive: "", distractor: "without its evidence ", placebo: "without another sentence " };

/* Where the passage stands as it is, without its evidence and without another sentence, among the other passages shown:
   its rank, or the number of those, all above it, as a negative number. Nothing where a form has no score. */
function ranksOf({ scores, passage: number }, place, ranking) {
  if (!ranking.length || Object.keys(VERDICT).some((form) => (scores[form]?.[place] ?? null) === null)) return null;
  const ranked = ranking.find(({ passage }) => passage.number === number);
  const others = ranking.filter((other) => other !== ranked);
  return Object.keys(VERDICT).map((form) => {
    if (ranked && form === "positive") return ranked.rank;
    const above = others.filter(({ score }) => score > scores[form][place]).length;
    return above < others.length ? above + 1 : -above;
  });
}

function verdict(one, place, ranking) {
  const words = Object.values(VERDICT);
  return (ranksOf(one, place, ranking) || []).map((rank, i) => `${words[i]}${rank < 0 ? `below ${ordinal(-rank)}` : ordinal(rank)}`).join("; ");
}

/* Whether the arm ranks the positive first, as long as its evidence is there: both cuts are alike otherwise. */
export function explains({ positives, rankings }, place) {
  const one = positives.find(({ scores }) => scores.positive);
  const [whole, without, other] = (one && ranksOf(one, place, rankings[place])) || [];
  return whole === 1 && other === 1 && without !== 1;
}

function ranksOfForms(one, places, rankings) {
  const said = places.map((place) => verdict(one, place, rankings[place]));
  return said.some(Boolean) && h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "its rank"), said.map((words) => h("td", { class: "words" }, words || "–")),
    h("td", { class: "words" }, "both were cut alike; evidence counts where the rank falls without it alone")));
}

function ordinal(n) {
  const tens = n % 100 > 10 && n % 100 < 14;
  return `${n}${(!tens && ["", "st", "nd", "rd"][n % 10]) || "th"}`;
}

function cutOf(form, one, text) {
  const signs = Array.from(text);
  const name = form.replace(/_cut$/, "");
  const flat = name === "masked" ? one.answers : one.removed[name] || [];
  return flat.filter((_, i) => i % 2 === 0).map((start, i) => `“${signs.slice(start, flat[2 * i + 1]).join("").trim()}”`).join(" ");
}
