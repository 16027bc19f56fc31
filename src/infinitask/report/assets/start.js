/** Reads the data of the page and builds it. */

function start() {
  const source = /** @type {HTMLElement} */ (document.getElementById("data"));
  const payload = JSON.parse(/** @type {string} */ (source.textContent));
  const kinds = { quantiles: QuantilePage, costs: CostPage, "level-sets": LevelSetPage };
  const page = new kinds[/** @type {keyof typeof kinds} */ (payload.kind)](payload);
  const place = /** @type {HTMLElement} */ (document.getElementById("explorer"));
  place.replaceChildren(page.aside, page.main);
  const words = /** @type {HTMLElement} */ (document.getElementById("rows-sentence"));
  words.textContent = page.rowsSentence();
  const names = { "": "automatic", light: "light", dark: "dark" };
  const button = /** @type {HTMLElement} */ (document.getElementById("theme"));
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const now = /** @type {keyof typeof names} */ (root.dataset.theme ?? "");
    const next = now === "" ? (isDark() ? "light" : "dark") : now === "dark" ? "light" : "dark";
    root.dataset.theme = next;
    button.textContent = `Colours: ${names[next]}`;
    page.redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.redraw());
  for (const [event, now] of /** @type {[string, boolean][]} */ ([["beforeprint", true], ["afterprint", false]])) {
    addEventListener(event, () => {
      printing = now;
      for (const draw of page.drawn) draw();
    });
  }
  for (const draw of page.drawn) draw();
  // for the console, and for tests
  Object.assign(window, { infinitask: { page, model: page.anyModel } });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start();
