/** The page of decisions: from "no false alarm" to "miss no case". */

class CostPage extends Explorer {
  /** @param {any} payload */
  constructor(payload) {
    const model = new Decisions(payload.model);
    super(payload, model);
    this.model = model;
    this.theta = clip(0, model.low, model.high);
    this.costs = { missed: 1, alarm: 1 };
    this.unit = 1;
    const [other, positive] = /** @type {[string, string]} */ (payload.labels);
    this.names = { case: positive, other };
    this.counts = this.rows.case ? this.count(this.rows.case) : null;
    this.missedBox = el("input", { type: "number", id: "missed-cost", min: 0, step: "any", value: 1 });
    this.alarmBox = el("input", { type: "number", id: "alarm-cost", min: 0, step: "any", value: 1 });
    this.ratioLine = el("p", { class: "sentence", id: "sentence", "aria-live": "polite" });
    this.slider = numberControl(
      { id: "theta", label: "Trade-off", low: model.low, high: model.high, step: 1 / 128, value: this.theta, theta: true, ends: ["no false alarm", "miss no case"] },
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

  /** Another trade-off. @param {number} theta @param {boolean} [costs] Whether costs follow. */
  move(theta, costs = true) {
    this.theta = clip(theta, this.model.low, this.model.high);
    if (costs) {
      const t = this.theta;
      this.costs = t >= 1 ? { missed: this.unit, alarm: 0 } : { missed: (this.unit * (1 + t)) / (1 - t), alarm: this.unit };
      this.missedBox.value = String(+this.costs.missed.toPrecision(6));
      this.alarmBox.value = String(+this.costs.alarm.toPrecision(6));
    }
    this.slider.set(this.theta);
    this.redraw();
  }

  build() {
    const bar = el("section", { class: "card bar-of-controls", "aria-label": "What you ask" });
    /** @param {HTMLInputElement} box @param {string} label @param {"missed" | "alarm"} which */
    const cost = (box, label, which) => {
      box.addEventListener("input", () => {
        const value = Number(box.value);
        const costs = { ...this.costs, [which]: value };
        const known = box.value.trim() !== "" && value >= 0 && costs.missed + costs.alarm > 0;
        box.setAttribute("aria-invalid", String(!known));
        if (!known) return;
        this.costs = costs;
        if (costs.alarm > 0) this.unit = costs.alarm;
        this.move((costs.missed - costs.alarm) / (costs.missed + costs.alarm), false);
      });
      return el("span", { class: "pair" }, el("label", { for: box.id }, label), box);
    };
    const pairs = [cost(this.missedBox, "A missed case costs", "missed"), cost(this.alarmBox, "a false alarm", "alarm")];
    const right = el("div", { class: "control" }, el("div", { class: "pairs" }, ...pairs), this.ratioLine);
    bar.append(this.slider.node, right);
    if (this.counts) bar.append(this.wish());
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
    this.drawn.push(() => {
      const { missed, alarm } = this.costs;
      const words =
        alarm === 0 ? "only missed cases count" : missed === 0 ? "only false alarms count" : missed === alarm ? "both errors count the same" : missed > alarm
          ? `a missed case counts ${say(missed / alarm)} times as much as a false alarm`
          : `a false alarm counts ${say(alarm / missed)} times as much as a missed case`;
      const counts = this.counts ? this.at(this.theta) : null;
      const found = counts ? ` Of ${say(counts.positives)} cases ${say(Math.round(counts.positives - counts.missed))} are found, with ${say(Math.round(counts.alarms))} false alarms.` : "";
      this.ratioLine.textContent = `Here ${words}.${found}`;
      this.ratioLine.dataset.value = JSON.stringify(alarm === 0 ? null : missed / alarm);
    });
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

  /** The trade-off that meets a wish. */
  wish() {
    const sensitivity = el("input", { type: "number", id: "required-sensitivity", min: 0, max: 100, step: "any", value: 95 });
    const rate = el("input", { type: "number", id: "allowed-alarms", min: 0, max: 100, step: "any", value: 10 });
    const answer = el("p", { class: "note", id: "wish-line", role: "status" });
    /** @param {HTMLInputElement} box @param {boolean} isRate */
    const find = (box, isRate) => () => {
      const share = Number(box.value) / 100;
      const known = box.value.trim() !== "" && share >= 0 && share <= 1;
      box.setAttribute("aria-invalid", String(!known));
      if (!known) return;
      const theta = this.bounded(share, isRate);
      answer.dataset.value = JSON.stringify(theta);
      if (theta === null) {
        answer.textContent = isRate ? "No trade-off has so few false alarms on these rows." : "No trade-off finds so many cases on these rows.";
        return;
      }
      this.move(theta);
      const { missed, alarms, positives, negatives } = this.at(theta);
      answer.textContent = `Trade-off ${say(theta)}: ${percent(1 - missed / positives)} of the cases are found, ${percent(alarms / negatives)} of the others raise an alarm.`;
    };
    return el(
      "div",
      { class: "control" },
      el("div", { class: "pairs" },
        el("span", { class: "pair" }, el("label", { for: "required-sensitivity" }, "Find at least"), sensitivity, el("span", {}, "% of cases"),
          el("button", { type: "button", id: "find-sensitivity", onclick: find(sensitivity, false) }, "Set")),
        el("span", { class: "pair" }, el("label", { for: "allowed-alarms" }, "or false alarms for at most"), rate, el("span", {}, "%"),
          el("button", { type: "button", id: "find-alarms", onclick: find(rate, true) }, "Set"))),
      answer,
    );
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
      ["cost", "Cost for each row, on average"],
      ["gain", "Best cost without looking at inputs"],
    ]);
    node.append(table, stats.node);
    this.drawn.push(() => {
      const { missed, alarms, positives, negatives } = this.at(this.theta);
      const total = positives + negatives;
      /** @type {Record<string, number>} */
      const cells = { found: positives - missed, missed, alarms, quiet: negatives - alarms };
      for (const [id, value] of Object.entries(cells)) {
        const output = /** @type {HTMLOutputElement} */ (table.querySelector(`#out-${id}`));
        output.textContent = plain.format(Math.round(value));
        output.dataset.value = JSON.stringify(value);
      }
      stats.set("sensitivity", 1 - missed / positives, percent(1 - missed / positives));
      stats.set("specificity", 1 - alarms / negatives, percent(1 - alarms / negatives));
      const cost = (this.costs.missed * missed + this.costs.alarm * alarms) / total;
      const constant = Math.min(this.costs.missed * positives, this.costs.alarm * negatives) / total;
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
      const y = widened(Math.min(...curve, 0), Math.max(...curve, 0));
      // a decision that is put beyond all others may be very far away
      const near = [...curve].map(Math.abs).sort((a, b) => a - b)[Math.floor(0.9 * curve.length)] || 1;
      chart.draw({
        x: [model.low, model.high],
        y: [Math.max(y[0], -3 * near), Math.min(y[1], 3 * near)],
        yTicks: [0],
        height: 190,
        xLabel: "trade-off: no false alarm … miss no case",
        yLabel: "above the line: alarm",
        layers: [
          { type: "rule", y: 0, colour: "var(--soft)" },
          { type: "line", xs: model.levels, ys: curve, colour: "var(--accent)", width: 2.5 },
          { type: "rule", x: this.theta, colour: "var(--soft)", dash: "4 4" },
          { type: "points", xs: [this.theta], ys: [value], colour: thetaColour((this.theta - model.low) / (model.high - model.low)), size: 6, edge: "var(--ink)" },
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
    const holder = el("div");
    node.append(holder);
    const chart = new Chart(holder);
    const { missed, alarms, positives, negatives } = /** @type {NonNullable<CostPage["counts"]>} */ (this.counts);
    this.drawn.push(() => {
      const { model, costs } = this;
      const total = positives + negatives;
      const ys = missed.map((m, j) => (costs.missed * m + costs.alarm * alarms[j]) / total);
      const now = this.at(this.theta);
      const [all, none] = [(costs.alarm * negatives) / total, (costs.missed * positives) / total];
      const cost = (costs.missed * now.missed + costs.alarm * now.alarms) / total;
      const top = Math.min(Math.max(...ys), 2.5 * Math.max(Math.min(all, none), cost)) || 1;
      chart.draw({
        x: [model.low, model.high], y: [0, 1.08 * top], xLabel: "trade-off", yLabel: "cost for each row",
        layers: [
          { type: "rule", y: all, colour: "var(--soft)", dash: "4 4" },
          { type: "rule", y: none, colour: "var(--soft)", dash: "4 4" },
          { type: "line", xs: model.levels, ys, colour: "var(--accent)", width: 2.5, name: "cost" },
          { type: "points", xs: [this.theta], ys: [cost], colour: thetaColour((this.theta - model.low) / (model.high - model.low)), size: 6, edge: "var(--ink)" },
        ],
        says: `Average cost over all trade-offs; ${say(cost)} at the chosen one.`,
      });
    });
    return node;
  }
}
