/* Puts the page together: state from the address, views, keys, downloads. */
import { byId, h, select, watchTips } from "./dom.js";
import { load, loadQuestion } from "./data.js";
import { VIEWS, read, written } from "./state.js";
import { left } from "./select.js";
import { meansTable, overview } from "./overview.js";
import { chips, facets } from "./facets.js";
import { QuestionTable, columns, filters, measures } from "./table.js";
import { question } from "./question.js";

let data, state, rows, table, later;
let top = 0; // of the questions, to come back to
let shown = ""; // what of the page stands already, so that typing draws the table alone

function say(text) {
  byId("alert").textContent = text;
  byId("alert").hidden = !text;
}

function go(changes, typing = false) {
  const before = state;
  state = { ...state, ...changes };
  clearTimeout(later);
  const address = written(state, data);
  if (typing) later = setTimeout(() => history.replaceState(null, "", address), 250);
  else if (before.view !== state.view || before.question !== state.question) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  say("");
  draw(typing);
}

async function draw(typing = false) {
  rows = left(data, state);
  chrome();
  if (state.question) return drawQuestion();
  if (state.view === "overview") byId("main").replaceChildren(...overview(data, state, go).flat(2));
  else drawQuestions(typing);
  shown = state.view;
}

function chrome() {
  const at = state.question ? "questions" : state.view;
  byId("views").replaceChildren(...Object.entries(VIEWS).map(([view, title]) => h("button", { type: "button", "aria-current": view === at ? "page" : null,
    click: () => go({ view, question: "" }) }, title)));
  const focused = document.activeElement?.closest?.("#compare label")?.textContent;
  if (focused) return; // a choice that is being made stays
  const arms = data.arms.map((arm) => [arm, arm]);
  const sets = Object.keys(data.sets);
  byId("compare").replaceChildren(...[
    sets.length > 1 && select("Set", sets.map((set) => [set, set]), state.set, (set) => go({ set, question: "" })),
    select("Compare", arms, state.a, (a) => go({ a })), select("with", arms, state.b, (b) => go({ b }))].filter(Boolean));
  byId("downloads").replaceChildren(...["CSV", "JSON"].map((kind) => h("button", { type: "button", click: () => download(kind) }, `Download ${kind}`)));
}

function drawQuestions(typing) {
  table ||= new QuestionTable(data, go);
  const wide = matchMedia("(min-width: 1280px)").matches; // else filters and measures are folded, above the questions
  const parts = {
    filters: () => filters(data, state, go),
    facets: () => facets(data, state, go),
    above: () => h("div", { class: "above" }, chips(data, state, go), measures(data, state, rows, wide)),
  };
  if (shown !== "questions") {
    byId("main").replaceChildren(h("h2", { class: "unseen" }, "Questions"), h("div", { class: "two" },
      h("details", { class: "side", open: wide }, h("summary", {}, "Filters"), parts.filters(), parts.facets()),
      h("div", {}, parts.above(), table.element)));
    requestAnimationFrame(() => scrollTo(0, top));
  } else Object.entries(parts).filter(([name]) => !(typing && name === "filters")).forEach(([name, make]) => redraw(name, make()));
  table.show(state, rows);
}

/* What is drawn anew keeps the focus where it was; a chip that went leaves it to the number of questions. */
function redraw(name, element) {
  const old = document.querySelector(`.${name}`);
  const reached = (within) => [...within.querySelectorAll("button, input, select, summary")];
  const place = reached(old).indexOf(document.activeElement);
  const open = [...old.querySelectorAll("details")].map((one) => one.open);
  element.querySelectorAll("details").forEach((one, i) => (one.open = open[i] ?? one.open));
  old.replaceWith(element);
  if (place >= 0) (name === "above" ? byId("left") : reached(element)[place])?.focus({ preventScroll: true });
}

async function drawQuestion() {
  const asked = state.question;
  const place = data.place.get(asked);
  const found = await loadQuestion(data, place);
  if (state.question !== asked) return;
  const at = rows.indexOf(place);
  const around = { before: data.ids[rows[at - 1]], after: data.ids[rows[at + 1]],
    said: at < 0 ? "not among the questions that the filters leave" : `${(at + 1).toLocaleString("en")} of the ${rows.length.toLocaleString("en")} questions left` };
  if (at < 0) around.after = data.ids[rows[0]];
  if (shown === "questions") top = scrollY;
  byId("main").replaceChildren(...question(data, state, place, found, go, around).flat(2));
  if (shown !== asked) {
    byId("heading").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  shown = asked;
}

async function contents() {
  if (state.question) {
    const place = data.place.get(state.question);
    const { rankings } = await loadQuestion(data, place);
    const two = [...new Set([state.a, state.b])];
    const lines = two.flatMap((arm) => rankings[data.arms.indexOf(arm)].map(({ rank, score, passage }) =>
      [arm, rank, score, passage.id, passage.title, passage.text, passage.hit, Boolean(passage.positive)]));
    return [`${data.collection}-${state.question}`, ["arm", "rank", "score", "id", "title", "text", "holds_answer", "positive"], lines];
  }
  if (state.view === "overview") return [`${data.collection}-overview`, ...meansTable(data, data.overview[state.set])];
  const shown = columns(data, state, data.arms);
  return [`${data.collection}-questions`, ["id", ...shown.map(([key]) => key), "answers"],
    rows.map((i) => [data.ids[i], ...shown.map(([, , of]) => of(i)), data.answers[i].join("; ")])];
}

async function download(kind) {
  const [name, head, lines] = await contents();
  // A spreadsheet would take a text that begins so for a formula.
  const plain = (value) => (typeof value === "string" ? value.replace(/^(?=[=+\-@\t\r])/, "'") : `${value ?? ""}`);
  const cell = (value) => (/[",\r\n]/.test(plain(value)) ? `"${plain(value).replaceAll('"', '""')}"` : plain(value));
  const text = kind === "CSV" ? [head, ...lines].map((line) => `${line.map(cell).join(",")}\r\n`).join("")
    : `${JSON.stringify(lines.map((line) => Object.fromEntries(head.map((key, i) => [key, line[i] ?? null]))), null, 1)}\n`;
  const href = URL.createObjectURL(new Blob([text], { type: kind === "CSV" ? "text/csv" : "application/json" }));
  h("a", { href, download: `${name}.${kind.toLowerCase()}` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

function key(event) {
  const typing = event.target.closest("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    byId("tip").hidden = true;
    if (typing?.id === "find" && state.find) go({ find: "" });
    else if (typing) typing.blur();
    else if (state.question) {
      go({ question: "", view: "questions" });
      table?.move(0);
    }
  } else if (!typing && event.key === "/") {
    event.preventDefault();
    if (state.question || state.view !== "questions") go({ view: "questions", question: "" });
    byId("find").focus();
  } else if (!typing && (event.key === "j" || event.key === "k")) {
    const by = event.key === "j" ? 1 : -1;
    if (!state.question && state.view === "questions") return table.move(table.element.contains(document.activeElement) ? by : 0);
    const next = rows[state.question ? rows.indexOf(data.place.get(state.question)) + by : 0];
    if (next !== undefined) {
      go({ question: data.ids[next] });
      if (table) table.active = rows.indexOf(next);
    }
  }
}

function fromAddress() {
  if (document.activeElement?.closest?.("#compare")) document.activeElement.blur(); // else chrome() leaves the choices as they are
  const found = read(location.hash, data);
  ({ state } = found);
  say(found.wrong.length ? `The address names what is not here: ${found.wrong.join("; ")}. The rest of it is shown.` : "");
  shown = "";
  draw();
}

async function start() {
  data = await load();
  if (!data.ids.length) throw new Error("The sets of this page hold no question: make it anew with other sets.");
  watchTips();
  document.addEventListener("keydown", key);
  addEventListener("popstate", fromAddress);
  fromAddress();
  document.documentElement.dataset.ready = "";
  performance.mark("ready");
}

start().catch((error) => {
  byId("waiting")?.remove();
  say(`This page cannot be shown. ${error.message}`);
});
