/**
 * The page of decisions: from "no false alarm" to "miss no case".
 *
 * The two costs are what a person typed, and nothing else changes them. The trade-off θ may be another one than they ask
 * for: that of a slider, or one that meets a bound on errors.
 */

class CostPage extends Explorer {
  /** @param {any} payload */
  constructor(payload) {
    const model = new Decisions(payload.model);
    super(payload, model);
    this.model = model;
    this.theta = clip(0, model.low, model.high);
    this.costs = { missed: 1, alarm: 1 };
    const [other, positive] = /** @type {[string, string]} */ (payload.labels);
    this.names = { case: positive, other };
    this.counts = this.rows.case ? this.count(this.rows.case) : null;
    this.slider = numberControl(
      { id: "theta", label: "Trade-off θ", low: model.low, high: model.high, step: 1 / 128, value: this.theta, theta: true, ends: ["no false alarm", "miss no case"] },
      (theta) => this.move(theta),
    );
    this.build();
  }

  /** Missed cases and false alarms at all levels. @param {Float64Array} cases */
  count(cases) {
    const { model, rows } = this;
    const k = model.levels.length;
    const [missed, alarms] = [new Float64Array(k), new Float64Array(k)];
    let [positives, negatives] = [0, 0];
    for (let i = 0; i < rows.count; i++) {
      const values = model.curve(this.leftOfRow(i));
      const weight = rows.weight[i];
      if (cases[i]) positives += weight;
      else negatives += weight;
      for (let j = 0; j < k; j++) {
        if (cases[i] && !(values[j] > 0)) missed[j] += weight;
        else if (!cases[i] && values[j] > 0) alarms[j] += weight;
      }
    }
    return { missed, alarms, positives, negatives };
  }

  /** Another trade-off; the costs stay. @param {number} theta */
  move(theta) {
    this.theta = clip(theta, this.model.low, this.model.high);
    this.slider.set(this.theta);
    this.redraw();
  }

  /** The trade-off that the costs ask for, or the nearest that was learnt. */
  thetaOfCosts() {
    const { missed, alarm } = this.costs;
    return clip((missed - alarm) / (missed + alarm), this.model.low, this.model.high);
  }

  /** The average cost for each row. @param {{missed: number, alarms: number, positives: number, negatives: number}} errors */
  costOf({ missed, alarms, positives, negatives }) {
    return (this.costs.missed * missed + this.costs.alarm * alarms) / (positives + negatives);
  }

  build() {
    const bar = el("section", { class: "card bar-of-controls of-costs", "aria-label": "What you ask" });
    const costs = costControls(this);
    this.slider.node.append(costs.elsewhere);
    bar.append(this.slider.node, costs.node);
    if (this.counts) bar.append(wishControls(this));
    this.main.append(bar);
    if (this.counts) this.main.append(this.errors());
    this.main.append(this.here());
    if (this.numbers.length) this.main.append(this.map());
    const lists = this.byCategory();
    if (lists) this.main.append(lists);
    if (this.counts) this.main.append(this.roc(), this.costCurve());
    const matter = this.relevanceCard("How much the decision moves when an input changes by one standard deviation, on the scale of the decision.");
    if (matter) this.main.append(matter);
    this.aside.append(this.inputPanel());
  }

  /** Errors on the rows at any trade-off. @param {number} theta */
  at(theta) {
    const { model, rows } = this;
    const { positives, negatives } = /** @type {NonNullable<CostPage["counts"]>} */ (this.counts);
    const cases = /** @type {Float64Array} */ (rows.case);
    let [missed, alarms] = [0, 0];
    const psi = model.field.psi(theta);
    const add = model.field.bias(theta) + model.shift(theta);
    for (let i = 0; i < rows.count; i++) {
      const alarm = dot(this.leftOfRow(i), psi) + add > 0;
      if (cases[i] && !alarm) missed += rows.weight[i];
      else if (!cases[i] && alarm) alarms += rows.weight[i];
    }
    return { missed, alarms, positives, negatives };
  }

  /** As `choose_theta`: one error within its bound, the other as small as possible. @param {number} share @param {boolean} isRate */
  bounded(share, isRate) {
    const counts = /** @type {NonNullable<CostPage["counts"]>} */ (this.counts);
    const [held, other] = isRate ? [counts.alarms, counts.missed] : [counts.missed, counts.alarms];
    const allowed = (isRate ? share * counts.negatives : (1 - share) * counts.positives) * (1 + 1e-12);
    let best = -1;
    const k = held.length;
    for (let step = 0; step < k; step++) {
      const j = isRate ? step : k - 1 - step;
      if (held[j] > allowed) continue;
      if (best < 0 || other[j] < other[best] || (other[j] === other[best] && held[j] < held[best])) best = j;
    }
    return best < 0 ? null : this.model.levels[best];
  }

  errors() {
    const node = card("On the rows of this page", `A case is a row with ${this.target} = ${this.names.case}. If the model was fitted to these rows, expect more errors on new ones.`);
    /** @param {string} id */
    const cell = (id) => el("td", {}, el("output", { id: `out-${id}` }));
    const table = el(
      "table",
      { class: "confusion" },
      el("caption", { class: "hidden" }, "How many rows of each kind are called a case"),
      el("thead", {}, el("tr", {}, el("td"), el("th", { scope: "col" }, "alarm"), el("th", { scope: "col" }, "no alarm"))),
      el("tbody", {},
        el("tr", {}, el("th", { scope: "row" }, "case"), cell("found"), cell("missed")),
        el("tr", {}, el("th", { scope: "row" }, "no case"), cell("alarms"), cell("quiet"))),
    );
    const stats = statList([
      ["sensitivity", "Cases found (sensitivity)"],
      ["specificity", "Others left in peace (specificity)"],
      ["cost", "Cost for each row, with your costs"],
      ["gain", "Best cost without looking at inputs"],
    ]);
    node.append(table, stats.node);
    this.drawn.push(() => {
      const errors = this.at(this.theta);
      const { missed, alarms, positives, negatives } = errors;
      /** @type {Record<string, number>} */
      const cells = { found: positives - missed, missed, alarms, quiet: negatives - alarms };
      for (const [id, value] of Object.entries(cells)) {
        const output = /** @type {HTMLOutputElement} */ (table.querySelector(`#out-${id}`));
        output.textContent = plain.format(Math.round(value));
        output.dataset.value = JSON.stringify(value);
      }
      stats.set("sensitivity", 1 - missed / positives, percent(1 - missed / positives));
      stats.set("specificity", 1 - alarms / negatives, percent(1 - alarms / negatives));
      const cost = this.costOf(errors);
      const constant = Math.min(this.costOf({ ...errors, missed: positives, alarms: 0 }), this.costOf({ ...errors, missed: 0, alarms: negatives }));
      stats.set("cost", cost, say(cost));
      stats.set("gain", constant, say(constant));
    });
    return node;
  }

  here() {
    const node = card("At this input", "");
    const stats = statList([
      ["probability", "Chance of a case"],
      ["decision", "Decision"],
      ["flip", "An alarm from this trade-off on"],
    ]);
    const holder = el("div");
    node.append(stats.node, holder);
    const chart = new Chart(holder);
    this.drawn.push(() => {
      const { model } = this;
      const p = model.probability(this.left);
      const value = model.decision(this.left, this.theta);
      const curve = model.curve(this.left);
      const flip = signChange(model.levels, curve, -1);
      stats.set("probability", p, percent(p));
      stats.set("decision", value, value > 0 ? "alarm" : "no alarm");
      stats.set("flip", flip, flip >= model.high ? "at no trade-off" : flip <= model.low ? "at every trade-off" : say(flip));
      // at the ends of Θ decisions jump beyond all others: the axis is that of the middle 90%
      const margin = 0.05 * (model.high - model.low);
      const middle = [...curve].filter((_, j) => model.levels[j] >= model.low + margin && model.levels[j] <= model.high - margin);
      const y = widened(Math.min(...middle, 0), Math.max(...middle, 0));
      chart.draw({
        x: [model.low, model.high],
        y,
        yTicks: [0],
        height: 190,
        xLabel: "trade-off: no false alarm … miss no case",
        yLabel: "above the line: alarm",
        layers: [
          { type: "rule", y: 0, colour: "var(--soft)" },
          { type: "line", xs: model.levels, ys: curve, colour: "var(--accent)", width: 2.5 },
          { type: "rule", x: this.theta, colour: "var(--soft)", dash: "4 4" },
          { type: "points", xs: [this.theta], ys: [clip(value, ...y)], colour: thetaColour((this.theta - model.low) / (model.high - model.low)), size: 6, edge: "var(--ink)" },
        ],
        says: `Decision at this input over all trade-offs; here it is ${value > 0 ? "an alarm" : "no alarm"}, and the chance of a case is ${percent(p)}.`,
      });
    });
    return node;
  }

  map() {
    const { model } = this;
    const words = this.numbers.length === 1
      ? `The chance of a case along ${this.columns[this.numbers[0]].name}, any other input as it is. Above the thick line there is an alarm.`
      : this.d > 2
      ? "Two inputs, the others as they are at the input. The thick line is the boundary now; colours say how likely a case is. The rows are drawn where their two inputs are, whatever their others."
      : "The thick line is the boundary now; colours say how likely a case is.";
    const node = card("Where the alarm begins", words, "wide");
    const holder = el("div");
    const chart = new Chart(holder);
    if (this.numbers.length === 1) {
      node.append(holder, this.marks());
      const [j] = this.numbers;
      this.drawn.push(() => {
        const column = this.columns[j];
        const xs = evenly(...widened(column.low, column.high), 161);
        const ps = this.answersAlong(j, xs, (left) => model.probability(left));
        chart.draw({
          x: [xs[0], xs[160]], y: [0, 1], xDates: column.date, xLabel: column.name, yLabel: "chance of a case", height: 300,
          layers: [
            ...this.groups((i) => this.rows.X[i * this.d + j], (i) => (this.rows.case?.[i] ? 0.98 : 0.02)),
            { type: "line", xs, ys: ps, colour: "var(--accent)", name: "chance" },
            { type: "rule", y: (1 - this.theta) / 2, colour: "var(--ink)", width: 2 },
            { type: "rule", x: this.x[j], colour: "var(--soft)", dash: "2 3" },
          ],
          says: `Chance of a case along ${column.name}; above ${percent((1 - this.theta) / 2)} there is an alarm.`,
        });
      });
      return node;
    }
    const plane = new Plane(this, (left) => model.probability(left), () => this.redraw());
    node.append(plane.controls(), holder, plane.note, this.marks());
    this.drawn.push(() => {
      if (!plane.current()) return;
      const [a, b] = plane.axes;
      const [psi, add] = [model.field.psi(this.theta), model.field.bias(this.theta) + model.shift(this.theta)];
      const x = /** @type {[number, number]} */ ([plane.xs[0], plane.xs[plane.n - 1]]);
      const y = /** @type {[number, number]} */ ([plane.ys[0], plane.ys[plane.n - 1]]);
      /** @type {Layer[]} */
      const layers = [{ type: "image", url: plane.picture, x, y, opacity: 0.4 }];
      for (const p of [0.1, 0.25, 0.5, 0.75, 0.9]) {
        layers.push({ type: "segments", pieces: plane.boundary((_, share) => share - p), colour: "var(--ink)", width: 0.6 });
      }
      layers.push(...this.groups((i) => this.rows.X[i * this.d + a], (i) => this.rows.X[i * this.d + b]));
      layers.push({ type: "segments", pieces: plane.boundary((left) => dot(left, psi) + add), colour: "var(--ink)", width: 3 });
      layers.push({ type: "points", xs: [this.x[a]], ys: [this.x[b]], colour: "none", size: 8, edge: "var(--ink)" });
      chart.draw({
        x, y, layers, height: 400, xDates: this.columns[a].date, yDates: this.columns[b].date, xLabel: this.columns[a].name, yLabel: this.columns[b].name,
        says: `Boundary between alarm and no alarm over ${this.columns[a].name} and ${this.columns[b].name}.`,
      });
    });
    return node;
  }

  byCategory() {
    return categoryCard(this, {
      title: "Category by category",
      words: "The chance of a case for each value of one input, the others as they are. Right of the thick line there is an alarm.",
      answer: "chance of a case",
      value: (left) => this.model.probability(left),
      limit: () => (1 - this.theta) / 2,
      text: (value) => percent(value),
      says: (words) => `Chance of a case by ${words}; above ${percent((1 - this.theta) / 2)} there is an alarm.`,
    });
  }

  /** The rows, by what happens to them. @param {(i: number) => number} across @param {(i: number) => number} up @returns {Layer[]} */
  groups(across, up) {
    const { model, rows } = this;
    const [psi, add] = [model.field.psi(this.theta), model.field.bias(this.theta) + model.shift(this.theta)];
    /** @type {number[][]} */
    const groups = [[], [], [], []];
    for (let i = 0; i < rows.count; i++) {
      const alarm = dot(this.leftOfRow(i), psi) + add > 0;
      groups[(rows.case && rows.case[i] ? 2 : 0) + (alarm ? 1 : 0)].push(i);
    }
    /** @param {number} k @param {string} colour @param {"dot" | "triangle"} shape @param {string} edge @param {number} size @returns {Layer} */
    const layer = (k, colour, shape, edge, size) => ({ type: "points", xs: groups[k].map(across), ys: groups[k].map(up), colour, shape, edge, size });
    if (!rows.case) return [layer(0, "var(--quiet)", "dot", "none", 2.2), layer(1, "var(--case)", "dot", "none", 2.6)];
    return [
      layer(0, "var(--quiet)", "dot", "var(--paper)", 2.4),
      layer(1, "var(--paper)", "dot", "var(--ink)", 3.2),
      layer(3, "var(--case)", "triangle", "none", 3.4),
      layer(2, "var(--alert)", "triangle", "var(--paper)", 5),
    ];
  }

  marks() {
    if (!this.counts) return legend(["dot case", "alarm"], ["dot", "no alarm"]);
    return legend(["triangle", "case found"], ["triangle alert", "case missed"], ["dot open", "false alarm"], ["dot", "left in peace"]);
  }

  roc() {
    const node = card("Cases found against false alarms", "Each point of the curve is a trade-off; the dot is yours.");
    const holder = el("div");
    node.append(holder);
    const chart = new Chart(holder);
    const { missed, alarms, positives, negatives } = /** @type {NonNullable<CostPage["counts"]>} */ (this.counts);
    const found = missed.map((m) => 1 - m / positives);
    const rate = alarms.map((a) => a / negatives);
    this.drawn.push(() => {
      const now = this.at(this.theta);
      const { model } = this;
      const k = model.levels.length - 1;
      /** @type {Layer[]} */
      const layers = [{ type: "line", xs: [0, 1], ys: [0, 1], colour: "var(--soft)", width: 1, dash: "4 4" }];
      const pieces = 32;
      for (let p = 0; p < pieces; p++) {
        const [a, b] = [p, p + 1].map((i) => Math.round((i * k) / pieces));
        layers.push({ type: "line", xs: rate.subarray(a, b + 1), ys: found.subarray(a, b + 1), colour: thetaColour((p + 0.5) / pieces), width: 3 });
      }
      layers.push({ type: "points", xs: [now.alarms / negatives], ys: [1 - now.missed / positives], colour: "var(--paper)", size: 6, edge: "var(--ink)" });
      chart.draw({
        x: [-0.02, 1.02], y: [-0.02, 1.02], xTicks: [0, 0.25, 0.5, 0.75, 1], yTicks: [0, 0.25, 0.5, 0.75, 1], layers,
        xLabel: "false alarms among the others", yLabel: "cases found",
        says: `Cases found against false alarms: ${percent(1 - now.missed / positives)} against ${percent(now.alarms / negatives)} now.`,
      });
    });
    return node;
  }

  costCurve() {
    const node = card("What it would cost elsewhere", "The average cost for each row with your two costs, had another trade-off been set. Dashed: an alarm for all, or for none.");
    const stats = statList([["least", "The least, on these rows"], ["least-theta", "It is at trade-off"]]);
    const holder = el("div");
    node.append(stats.node, holder, legend(["dot theta", "yours"], ["dot open", "the least on these rows"]));
    const chart = new Chart(holder);
    const { missed, alarms, positives, negatives } = /** @type {NonNullable<CostPage["counts"]>} */ (this.counts);
    this.drawn.push(() => {
      const { model } = this;
      const rows = { positives, negatives };
      const ys = missed.map((m, j) => this.costOf({ missed: m, alarms: alarms[j], ...rows }));
      const all = this.costOf({ missed: 0, alarms: negatives, ...rows });
      const none = this.costOf({ missed: positives, alarms: 0, ...rows });
      const cost = this.costOf(this.at(this.theta));
      const best = leastNear(ys, model.levels, this.thetaOfCosts());
      stats.set("least", ys[best], say(ys[best]));
      stats.set("least-theta", model.levels[best], say(model.levels[best]));
      const top = Math.min(Math.max(...ys), 2.5 * Math.max(Math.min(all, none), cost)) || 1;
      chart.draw({
        x: [model.low, model.high], y: [0, 1.08 * top], xLabel: "trade-off", yLabel: "cost for each row",
        layers: [
          { type: "rule", y: all, colour: "var(--soft)", dash: "4 4" },
          { type: "rule", y: none, colour: "var(--soft)", dash: "4 4" },
          { type: "line", xs: model.levels, ys, colour: "var(--accent)", width: 2.5, name: "cost" },
          { type: "points", xs: [this.theta], ys: [cost], colour: thetaColour((this.theta - model.low) / (model.high - model.low)), size: 6, edge: "var(--ink)" },
          { type: "points", xs: [model.levels[best]], ys: [ys[best]], colour: "none", size: 8, edge: "var(--ink)" },
        ],
        says: `Average cost over all trade-offs; ${say(cost)} at the chosen one, at least ${say(ys[best])}, at trade-off ${say(model.levels[best])}.`,
      });
    });
    return node;
  }
}
