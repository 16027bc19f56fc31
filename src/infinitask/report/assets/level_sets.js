/** The page of level sets: which rows are unusual, for every share that is to be called so. */

/** Rows in the list of the strangest, and what its button goes on to; columns of that list. */
const ROWS_LISTED = [15, 50, 200];
const MOST_COLUMNS = 12;

const SETS = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

class LevelSetPage extends Explorer {
  /** @param {any} payload */
  constructor(payload) {
    const model = new LevelSets(payload.model);
    super(payload, model);
    this.model = model;
    this.nu = model.nu;
    this.p = /** @type {Float64Array} */ (this.rows.p);
    this.total = this.rows.weight.reduce((sum, weight) => sum + weight, 0);
    this.build();
  }

  build() {
    const { model } = this;
    const bar = el("section", { class: "card bar-of-controls", "aria-label": "What you ask" });
    const control = numberControl(
      { id: "nu", label: "Share to call unusual", low: model.low, high: model.high, step: 0.5, value: this.nu, unit: "%", scale: 100, theta: true, ends: ["only the strangest", "nearly all"] },
      (nu) => {
        this.nu = nu;
        this.redraw();
      },
    );
    const sentence = el("p", { class: "sentence", id: "sentence", "aria-live": "polite" });
    const stats = statList([["outside", "Rows called unusual"], ["share", "Their share"]]);
    bar.append(control.node, el("div", { class: "control" }, sentence, stats.node));
    this.drawn.push(() => {
      let outside = 0;
      for (let i = 0; i < this.rows.count; i++) if (!this.isInside(i)) outside += this.rows.weight[i];
      stats.set("outside", outside, `${plain.format(Math.round(outside))} of ${plain.format(Math.round(this.total))}`);
      stats.set("share", outside / this.total, percent(outside / this.total));
      sentence.textContent = `The set leaves out ${percent(this.nu)} of usual rows. Of the rows of this page, it leaves out ${percent(outside / this.total)}.`;
    });
    this.main.append(bar);
    if (this.numbers.length) this.main.append(this.map());
    this.main.append(this.here());
    const matter = this.relevanceCard("How much the answer moves when an input changes by one standard deviation.");
    if (matter) this.main.append(matter);
    const lists = this.byCategory();
    if (lists) this.main.append(lists);
    this.main.append(this.first(), this.promise());
    this.aside.append(this.inputPanel());
  }

  /** Whether a row is inside the set. @param {number} i */
  isInside(i) {
    return this.model.nested ? this.p[i] >= this.nu : this.model.decision(this.leftOfRow(i), this.nu) >= 0;
  }

  here() {
    const node = card("At this input", "The p-value: the smallest share at which it is called unusual. A new usual row has a p-value below 5% once in twenty times.");
    const stats = statList([["p", "p-value"], ["inside", "Verdict"]]);
    node.append(stats.node);
    this.drawn.push(() => {
      const p = this.model.score(this.encoder.encode(this.x), this.left);
      const value = this.model.decision(this.left, this.nu);
      stats.set("p", p, p < this.model.low ? `${say(p)} (below all shares that were learnt)` : say(p));
      stats.set("inside", value, value >= 0 ? "usual" : "unusual");
    });
    return node;
  }

  map() {
    const { model } = this;
    const words = this.numbers.length === 1
      ? `The p-value along ${this.columns[this.numbers[0]].name}, any other input as it is. Below the thick line a row is called unusual.`
      : this.d > 2
      ? "Two inputs, the others as they are at the input. The thick line is the set now, the thin ones are others, from 5% to 90%. The rows are drawn where their two inputs are, whatever their others."
      : "The thick line is the set now, the thin ones are others, from 5% to 90%.";
    const node = card("The sets, one inside the other", words, "wide");
    const holder = el("div");
    const chart = new Chart(holder);
    if (this.numbers.length === 1) {
      node.append(holder, legend(["cross", "unusual"], ["dot", "usual"]));
      const [j] = this.numbers;
      this.drawn.push(() => {
        const column = this.columns[j];
        const xs = evenly(...widened(column.low, column.high), 161);
        const ps = this.answersAlong(j, xs, (left, encoded) => model.score(encoded, left));
        chart.draw({
          x: [xs[0], xs[160]], y: [0, 1.02], xDates: column.date, xLabel: column.name, yLabel: "p-value", height: 300,
          layers: [
            { type: "line", xs, ys: ps, colour: "var(--accent)", width: 2.5, name: "p-value" },
            ...this.points((i) => this.rows.X[i * this.d + j], (i) => this.p[i]),
            { type: "rule", y: this.nu, colour: "var(--ink)", width: 2 },
            { type: "rule", x: this.x[j], colour: "var(--soft)", dash: "2 3" },
          ],
          says: `p-value along ${column.name}; below ${percent(this.nu)} a row is called unusual.`,
        });
      });
      return node;
    }
    const plane = new Plane(this, (left, encoded) => model.score(encoded, left), () => this.redraw());
    node.append(
      plane.controls(),
      holder,
      plane.note,
      legend(["cross", "unusual"], ["dot", "usual"]),
    );
    this.drawn.push(() => {
      if (!plane.current()) return;
      const [a, b] = plane.axes;
      const x = /** @type {[number, number]} */ ([plane.xs[0], plane.xs[plane.n - 1]]);
      const y = /** @type {[number, number]} */ ([plane.ys[0], plane.ys[plane.n - 1]]);
      /** @type {Layer[]} */
      const layers = [{ type: "image", url: plane.picture, x, y, opacity: 0.4 }];
      /** The boundary of the set of a share. @param {number} nu */
      const edge = (nu) => {
        const [psi, add] = [model.field.psi(nu), model.field.bias(nu) - model.shift(nu)];
        return plane.boundary((left, p) => (model.nested ? p - nu : dot(left, psi) + add));
      };
      for (const nu of SETS.filter((at) => at >= model.low && at <= model.high)) {
        layers.push({ type: "segments", pieces: edge(nu), colour: thetaColour(nu), width: 1.2 });
      }
      layers.push(...this.points((i) => this.rows.X[i * this.d + a], (i) => this.rows.X[i * this.d + b]));
      layers.push({ type: "segments", pieces: edge(this.nu), colour: "var(--ink)", width: 3 });
      layers.push({ type: "points", xs: [this.x[a]], ys: [this.x[b]], colour: "none", size: 8, edge: "var(--ink)" });
      chart.draw({
        x, y, layers, height: 420, xDates: this.columns[a].date, yDates: this.columns[b].date, xLabel: this.columns[a].name, yLabel: this.columns[b].name,
        says: `The set that leaves out ${percent(this.nu)}, over ${this.columns[a].name} and ${this.columns[b].name}.`,
      });
    });
    return node;
  }

  byCategory() {
    return categoryCard(this, {
      title: "Category by category",
      words: "The p-value for each value of one input, the others as they are. Left of the thick line it is called unusual.",
      answer: "p-value",
      value: (left, encoded) => this.model.score(encoded, left),
      limit: () => this.nu,
      text: (value) => (value < 1e-3 ? "below 0.001" : say(+value.toPrecision(2))),
      says: (words) => `p-value by ${words}; below ${percent(this.nu)} it is called unusual.`,
    });
  }

  /** @param {(i: number) => number} across @param {(i: number) => number} up @returns {Layer[]} */
  points(across, up) {
    /** @type {number[][]} */
    const [inside, outside] = [[], []];
    for (let i = 0; i < this.rows.count; i++) (this.isInside(i) ? inside : outside).push(i);
    return [
      { type: "points", xs: inside.map(across), ys: inside.map(up), colour: "var(--quiet)", size: 2.4, edge: "var(--paper)" },
      { type: "points", xs: outside.map(across), ys: outside.map(up), colour: "var(--alert)", size: 3, shape: "cross" },
    ];
  }

  first() {
    const node = card("The first to leave", `The strangest rows, with their p-values. Below ${percent(this.model.low)}, the smallest share that was learnt, they only say which row is stranger. Press a row to look at it. p-values of rows that the model was fitted to are too large; look at rows it has not seen.`, "wide");
    // where not all rows are on the page, the strangest up to half of those shown are
    const certain = this.rows.count < this.payload.total ? this.rows.count >> 1 : this.rows.count;
    const order = Array.from(this.p.keys()).sort((a, b) => this.p[a] - this.p[b]).slice(0, certain);
    const shown = this.order.slice(0, MOST_COLUMNS);
    const table = el("table", { class: "rows", id: "first-rows" }, el("caption", { class: "hidden" }, "Rows with the smallest p-values"));
    const head = el("tr", {}, ...["row", "p-value", "now", ...shown.map((j) => this.columns[j].name)].map((name) => el("th", { scope: "col" }, name)));
    const body = el("tbody");
    /** @type {HTMLElement[]} */
    const verdicts = [];
    /** @param {number} i */
    const row = (i) => {
      const verdict = el("td");
      const name = this.rowName(i);
      const button = el("button", { type: "button", class: "link", "aria-label": `Look at row ${name}`, title: name, onclick: () => this.lookAtRow(i) }, shortened(name, 30));
      const p = el("td", { class: "number" }, say(this.p[i]));
      p.dataset.value = JSON.stringify(this.p[i]);
      const cells = shown.map((j) => el("td", { class: "number" }, sayValue(this.columns[j], this.rows.X[i * this.d + j])));
      verdicts.push(verdict);
      return el("tr", {}, el("th", { scope: "row" }, button), p, verdict, ...cells);
    };
    const words = el("p", { class: "note", id: "first-line", role: "status" });
    const more = el("button", { type: "button", id: "more-rows" });
    const judge = () => verdicts.forEach((verdict, k) => (verdict.textContent = this.isInside(order[k]) ? "usual" : "unusual"));
    /** @param {number} count */
    const show = (count) => {
      body.append(...order.slice(verdicts.length, count).map(row));
      judge();
      const left = this.d - shown.length;
      const columns = left ? ` ${left} of ${this.d} columns are left out, those that matter least.` : "";
      words.textContent = `${plain.format(verdicts.length)} of ${plain.format(Math.round(this.total))} rows are listed.${columns}`;
      const next = ROWS_LISTED.find((size) => size > count);
      more.hidden = next === undefined || order.length <= count;
      more.textContent = `Show ${Math.min(next ?? 0, order.length)} rows`;
      more.onclick = () => show(next ?? count);
    };
    show(ROWS_LISTED[0]);
    table.append(el("thead", {}, head), body);
    node.append(words, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of the first to leave" }, table), more);
    this.drawn.push(judge);
    return node;
  }

  /** Do as many rows leave as was asked for? */
  promise() {
    const node = card("Does it keep its word?", "The share of rows with a p-value below each share. On the diagonal, as many rows leave as you ask for. Rows that the model was fitted to leave less often than new ones: look at rows it has not seen.");
    const holder = el("div");
    node.append(holder, legend(["accent", `share of ${plain.format(this.payload.chance.rows)} rows`], chanceKey(this.payload.chance)));
    const chart = new Chart(holder);
    const order = Array.from(this.p.keys()).sort((a, b) => this.p[a] - this.p[b]);
    let sum = 0;
    const shares = order.map((i) => (sum += this.rows.weight[i]) / this.total);
    const ps = order.map((i) => this.p[i]);
    this.drawn.push(() => {
      const below = search(ps, this.nu, "left");
      const now = below ? shares[below - 1] : 0;
      chart.draw({
        x: [0, 1], y: [0, 1], xTicks: [0, 0.25, 0.5, 0.75, 1], yTicks: [0, 0.25, 0.5, 0.75, 1],
        xLabel: "share asked for", yLabel: "share of rows that left",
        layers: [
          chanceBand(this.payload.chance),
          { type: "line", xs: [0, 1], ys: [0, 1], colour: "var(--soft)", width: 1, dash: "4 4" },
          { type: "line", xs: ps, ys: shares, colour: "var(--accent)", width: 2.5, name: "left" },
          { type: "points", xs: [this.nu], ys: [now], colour: thetaColour(this.nu), size: 6, edge: "var(--ink)" },
        ],
        says: `Asked for ${percent(this.nu)}, ${percent(now)} of the rows have a smaller p-value.`,
      });
    });
    return node;
  }
}
