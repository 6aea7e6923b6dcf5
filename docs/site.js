/* What the theme makes beside blocks of code has no name, and a wide table cannot be scrolled by keys: mend both. */
new MutationObserver(() => {
  document.querySelectorAll(".md-code__nav").forEach((nav, i) => nav.setAttribute("aria-label", `Code ${i + 1}`));
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((table) => table.setAttribute("tabindex", "0"));
}).observe(document.body, { childList: true, subtree: true });
