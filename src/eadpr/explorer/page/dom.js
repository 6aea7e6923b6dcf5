/* Elements are made of names, attributes and text nodes: no text is ever read as markup. */

export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

/* A word with an explanation: shown on hover and focus, read out after the word. */
export function term(word, said) {
  const id = `said-${++term.count}`;
  const hidden = h("span", { id, class: "unseen" }, said);
  return [h("button", { type: "button", class: "term", "aria-describedby": id, "data-tip": said }, word), hidden];
}
term.count = 0;

export function watchTips() {
  const tip = byId("tip");
  const show = ({ target }) => {
    const about = target.closest?.("[data-tip]");
    tip.hidden = !about;
    if (!about) return;
    tip.textContent = about.dataset.tip;
    const { left, bottom } = about.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${bottom + 6 + tip.offsetHeight > innerHeight ? Math.max(8, bottom - 34 - tip.offsetHeight) : bottom + 6}px`;
  };
  document.addEventListener("mouseover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("scroll", () => (tip.hidden = true), true);
}

export function select(label, options, value, change) {
  const made = options.map(([key, said]) => h("option", { value: key, selected: key === String(value) }, said));
  return h("label", {}, h("span", {}, label), h("select", { change: (event) => change(event.target.value) }, made));
}

/* The class of a row's colour. The rows of the default run have those of DVC's plots (.dvc/plots), others come behind,
   and those beyond the last colour take what rows of the default run would have that are not there. */
const USUAL = ["bm25", "dpr", "eadpr", "eadpr-paper", "untrained"];

export function series(data, row) {
  const others = data.rows.filter((name) => !USUAL.includes(name));
  const free = [5, 6, 7, 8, 9, ...USUAL.keys()].filter((i) => !data.rows.includes(USUAL[i]));
  return `series${USUAL.includes(row) ? USUAL.indexOf(row) : free[others.indexOf(row) % free.length]}`;
}

export function swatch(data, row) {
  return h("span", { class: `swatch ${series(data, row)}`, "aria-hidden": "true" });
}

export function per100(share, digits = 1) {
  return share === null || Number.isNaN(share) ? "–" : (100 * share).toFixed(digits);
}

export function signed(number, digits = 1) {
  return `${number > 0 ? "+" : number < 0 ? "−" : "±"}${Math.abs(number).toFixed(digits)}`;
}
