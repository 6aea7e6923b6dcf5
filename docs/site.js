/* The theme puts a landmark without a name beside each block of code; for those who listen to a page they need one. */
new MutationObserver(() =>
  document.querySelectorAll(".md-code__nav").forEach((nav, i) => nav.setAttribute("aria-label", `Code ${i + 1}`)),
).observe(document.body, { childList: true, subtree: true });
