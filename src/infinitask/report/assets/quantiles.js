/** The page of quantiles: what to expect at an input, and how sure that is. */

/** Categories in a small picture. */
const SMALL_CATEGORIES = 6;

class QuantilePage extends Explorer {
  /** @param {any} payload */
  constructor(payload) {
    const model = new Quantiles(payload.model);
    super(payload, model);
    this.model = model;
    const least = Math.max(model.low, 0.001);
    const most = Math.min(model.high, 0.999);
    this.level = clip(0.5, least, most);
    const widest = model.conformal ? 0.99 : Math.min(0.99, 1 - 2 * model.low, 2 * model.high - 1);
    this.widest = Math.max(widest, 0.01);
    this.coverage = Math.min(0.9, this.widest);
    this.from = clip(0.05, least, most);
    this.to = clip(0.95, least, most);
    const [low, high] = /** @type {[number, number]} */ (payload.range);
    this.range = { low, high };
    this.threshold = +(low + 0.75 * (high - low)).toPrecision(3);
    this.along = this.order[0];
    /** @type {Map<string, {key: string, xs: Float64Array, lefts: Float64Array[], sorted: (Curve | undefined)[]}>} */
    this.slices = new Map();
    this.build(least, most);
  }

  /** @param {number} least @param {number} most */
  build(least, most) {
    const bar = el("section", { class: "card bar-of-controls", "aria-label": "What you ask" });
    /** @param {"level" | "coverage" | "from" | "to" | "threshold"} name */
    const take = (name) => (/** @type {number} */ value) => {
      this[name] = value;
      this.redraw();
    };
    const inside = { low: Math.max(least, 0.01), high: Math.min(most, 0.99) };
    bar.append(
      numberControl(
        { id: "coverage", label: "How sure", low: 0.01, high: this.widest, step: 1, value: this.coverage, unit: "%", scale: 100, ends: ["narrow interval", "wide interval"] },
        take("coverage"),
      ).node,
      numberControl(
        { id: "level", label: "Quantile", ...inside, step: 1, value: this.level, unit: "%", scale: 100, theta: true, ends: ["low outcomes", "high outcomes"] },
        take("level"),
      ).node,
      numberControl(
        { id: "threshold", label: `A limit for ${this.target}`, ...this.range, step: "any", value: this.threshold, free: true },
        take("threshold"),
      ).node,
    );
    this.main.append(bar, this.here(inside), this.fan());
    const whatIf = this.whatIf();
    if (whatIf) this.main.append(whatIf);
    const matter = this.relevanceCard(
      `How much the answer changes, in units of ${this.target}, when an input changes by one standard deviation.`,
    );
    if (matter) this.main.append(matter);
    const reliability = this.reliability();
    if (reliability) this.main.append(reliability);
    this.aside.append(this.inputPanel());
  }

  /** The distribution at the input. @param {{low: number, high: number}} inside */
  here(inside) {
    const node = card("At this input", "", "wide");
    const sentence = el("p", { class: "sentence", id: "sentence", "aria-live": "polite" });
    const stats = statList([
      ["median", "Half of all outcomes are below"],
      ["interval", "Interval"],
      ["quantile", "Quantile"],
      ["above", "Chance above the limit"],
      ["between", "Between two quantiles"],
    ]);
    const alert = alertLine("ends-alert");
    /** @param {"from" | "to"} name @param {string} label */
    const end = (name, label) => {
      const box = el("input", { type: "number", id: name, min: 100 * inside.low, max: 100 * inside.high, step: "any", value: 100 * this[name] });
      box.addEventListener("input", () => {
        const value = Number(box.value) / 100;
        const known = box.value.trim() !== "" && value >= inside.low && value <= inside.high;
        box.setAttribute("aria-invalid", String(!known));
        alert.textContent = known ? "" : `It must be between ${percent(inside.low)} and ${percent(inside.high)}.`;
        if (!known) return;
        this[name] = value;
        this.redraw();
      });
      return el("span", { class: "pair" }, el("label", { for: name }, label), box, el("span", {}, "%"));
    };
    const ends = el("div", { class: "pairs" }, end("from", "Between quantiles"), end("to", "and"), alert);
    const left = el("div");
    const right = el("div");
    node.append(sentence, stats.node, ends, el("div", { class: "charts" }, left, right));
    const [functionChart, densityChart] = [new Chart(left), new Chart(right)];
    this.drawn.push(() => {
      const { model, target } = this;
      const curve = model.curve(this.left);
      const plainCurve = model.rearranged ? model.sorted(this.left) : undefined;
      const median = model.quantile(this.left, clip(0.5, model.low, model.high), plainCurve);
      const [low, high] = model.interval(this.left, this.coverage);
      const quantile = model.quantile(this.left, this.level, plainCurve);
      const above = 1 - model.cdf(curve, this.threshold);
      const between = [this.from, this.to].map((level) => model.quantile(this.left, level, plainCurve));
      stats.set("median", median, say(median));
      stats.set("interval", [low, high], `${say(low)} to ${say(high)}`);
      stats.set("quantile", quantile, say(quantile));
      stats.set("above", above, percent(above));
      stats.set("between", between, `${say(between[0])} to ${say(between[1])}`);
      sentence.textContent =
        `${percent(this.coverage)} of outcomes like this one lie between ${say(low)} and ${say(high)}; ` +
        `${percent(this.level)} lie below ${say(quantile)}. ` +
        `The chance that ${target} is above ${say(this.threshold)} is ${percent(above)}.`;
      const { levels, values } = curve;
      const last = levels.length - 1;
      // tails may be very long: what nine hundred and ninety in a thousand are within is drawn
      const span = [0.005, 0.995].map((level) => curveAt(curve, clip(level, levels[0], levels[last])));
      const y = widened(Math.min(span[0], Number.isFinite(low) ? low : span[0]), Math.max(span[1], Number.isFinite(high) ? high : span[1]), 0.06);
      /** @type {Layer[]} */
      const layers = [{ type: "band", xs: [levels[0], levels[last]], low: [low, low].map((v) => Math.max(v, y[0])), high: [high, high].map((v) => Math.min(v, y[1])), colour: "var(--accent)", opacity: 0.12 }];
      const pieces = 40;
      for (let k = 0; k < pieces; k++) {
        const [a, b] = [k, k + 1].map((i) => Math.round((i * last) / pieces));
        if (b > a) layers.push({ type: "line", xs: levels.subarray(a, b + 1), ys: values.subarray(a, b + 1), colour: thetaColour((k + 0.5) / pieces), width: 3 });
      }
      layers.push(
        { type: "line", xs: levels, ys: values, colour: "transparent", width: 0.1, name: target },
        { type: "rule", y: this.threshold, colour: "var(--soft)", dash: "4 4" },
        { type: "points", xs: [this.level], ys: [quantile], colour: thetaColour(this.level), size: 6, edge: "var(--ink)" },
      );
      functionChart.draw({
        x: [0, 1],
        y,
        xTicks: [0, 0.25, 0.5, 0.75, 1],
        xLabel: "share of outcomes below",
        yLabel: target,
        layers,
        says: `Quantile function of ${target} at this input, from ${say(span[0])} to ${say(span[1])}.`,
      });
      const at = evenly(y[0], y[1], 161);
      const density = at.map((value) => model.pdf(curve, value));
      const top = Math.max(...density.filter(Number.isFinite), 1e-300);
      const shaded = at.filter((value) => value >= low && value <= high);
      const over = shaded.map((value) => Math.min(model.pdf(curve, value), top));
      densityChart.draw({
        x: y,
        y: [0, 1.08 * top],
        yTicks: [],
        xLabel: target,
        yLabel: "more likely where higher",
        layers: [
          { type: "band", xs: shaded, low: shaded.map(() => 0), high: over, colour: "var(--accent)", opacity: 0.25 },
          { type: "line", xs: at, ys: density, colour: "var(--ink)", name: "density" },
          { type: "rule", x: this.threshold, colour: "var(--soft)", dash: "4 4" },
          { type: "rule", x: quantile, colour: thetaColour(this.level), width: 2.5 },
        ],
        says: `Density of ${target} at this input; the interval from ${say(low)} to ${say(high)} is shaded.`,
      });
    });
    return node;
  }

  /** Quantiles along one input, the others as they are. @param {number} j @param {number} count */
  slice(j, count) {
    const column = this.columns[j];
    const beyond = column.kind === "choice" ? this.x[j] : clip(this.x[j], column.low, column.high) - this.x[j];
    const key = `${count} ${Array.from(this.x, (value, i) => (i === j ? "" : value))} ${beyond}`;
    const kept = this.slices.get(`${j} ${count}`);
    if (kept?.key === key) return kept;
    const xs = this.walk(j, count);
    const lefts = this.answersAlong(j, xs, (left) => left);
    const sorted = lefts.map((left) => (this.model.rearranged ? this.model.sorted(left) : undefined));
    const found = { key, xs, lefts, sorted };
    this.slices.set(`${j} ${count}`, found);
    return found;
  }

  fan() {
    const node = card("Along one input", "All other inputs stay as they are. Colours go from low to high quantiles; the lines are the interval you asked for and the middle.", "wide");
    const holder = el("div");
    const note = el("p", { class: "note" });
    if (this.d > 1) {
      node.append(
        choice("along", "Along", this.choices(), String(this.along), (value) => {
          this.along = Number(value);
          this.redraw();
        }),
      );
    }
    node.append(holder, note);
    const chart = new Chart(holder);
    this.drawn.push(() => {
      const { model, rows, along } = this;
      const column = this.columns[along];
      const { xs, lefts, sorted: curves } = this.slice(along, 73);
      const start = Math.max(model.low, 0.025);
      const end = Math.min(model.high, 0.975);
      const bands = 20;
      const levels = evenly(start, end, bands + 1);
      const fans = Array.from(levels, (level) => lefts.map((left, k) => model.quantile(left, level, curves[k])));
      const middle = lefts.map((left, k) => model.quantile(left, clip(0.5, model.low, model.high), curves[k]));
      const ends = lefts.map((left, k) => model.interval(left, this.coverage, curves[k]));
      const chosen = lefts.map((left, k) => model.quantile(left, this.level, curves[k]));
      const every = Array.from({ length: rows.count }, (_, i) => i).filter((i) => rows.count <= 1200 || i % Math.ceil(rows.count / 1200) === 0);
      const values = [...fans[0], ...fans[bands], ...ends.flat().filter(Number.isFinite)];
      if (rows.y) values.push(this.range.low, this.range.high);
      const span = widened(Math.min(...values), Math.max(...values));
      note.textContent = column.kind === "choice" ? saysCategories(column, xs.length) : "";
      if (column.kind === "choice") {
        chart.draw(this.categoryFan(along, xs, { span, fans, middle, ends, chosen, every }));
        return;
      }
      /** @type {Layer[]} */
      const layers = [];
      for (let k = 0; k < bands; k++) {
        layers.push({ type: "band", xs, low: fans[k], high: fans[k + 1], colour: thetaColour((k + 0.5) / bands), opacity: 0.5 });
      }
      if (rows.y) {
        const y = rows.y;
        layers.push({ type: "points", xs: every.map((i) => rows.X[i * this.d + along]), ys: every.map((i) => y[i]), colour: "var(--ink)", size: 1.7, opacity: this.d > 1 ? 0.3 : 0.55 });
      }
      layers.push(
        { type: "line", xs, ys: ends.map((e) => e[0]), colour: "var(--ink)", width: 1.5, dash: "5 3", name: "from" },
        { type: "line", xs, ys: ends.map((e) => e[1]), colour: "var(--ink)", width: 1.5, dash: "5 3", name: "to" },
        { type: "line", xs, ys: middle, colour: "var(--ink)", width: 2, name: "middle" },
        { type: "line", xs, ys: chosen, colour: thetaColour(this.level), width: 3 },
        { type: "rule", x: this.x[along], colour: "var(--soft)", dash: "2 3" },
      );
      chart.draw({
        x: widened(xs[0], xs[xs.length - 1], 0.01),
        y: span,
        xDates: column.date,
        xLabel: column.name,
        yLabel: this.target,
        layers,
        height: 340,
        says: `Quantiles of ${this.target} along ${column.name}: the middle goes from ${say(middle[0])} to ${say(middle[middle.length - 1])}.`,
      });
    });
    return node;
  }

  /** The fan over a list: one line for each category. @param {number} j @param {Float64Array} codes
   * @param {{span: [number, number], fans: number[][], middle: number[], ends: number[][], chosen: number[], every: number[]}} answers
   * @returns {Drawing} */
  categoryFan(j, codes, { span, fans, middle, ends, chosen, every }) {
    const { rows } = this;
    const column = this.columns[j];
    const names = Array.from(codes, (code) => sayValue(column, code));
    const bands = fans.length - 1;
    const here = codes.indexOf(this.x[j]);
    /** @type {Layer[]} */
    const layers = [barAcross(here, ...span, "var(--soft)", 0.12, 0.5)];
    codes.forEach((_, k) => {
      for (let b = 0; b < bands; b++) layers.push(barAcross(k, fans[b][k], fans[b + 1][k], thetaColour((b + 0.5) / bands), 0.5));
    });
    if (rows.y) {
      const y = rows.y;
      const place = new Map(Array.from(codes, (code, k) => [code, k]));
      const seen = every.filter((i) => place.has(rows.X[i * this.d + j]));
      const at = seen.map((i) => beside(/** @type {number} */ (place.get(rows.X[i * this.d + j])), i));
      layers.push({ type: "points", xs: seen.map((i) => y[i]), ys: at, colour: "var(--ink)", size: 1.7, opacity: 0.3 });
    }
    /** Upright marks in every line. @param {number[]} at @param {number} half */
    const marks = (at, half) => at.map((x, k) => [x, k - half, x, k + half]).filter(([x]) => Number.isFinite(x));
    layers.push(
      { type: "segments", pieces: [...marks(ends.map((e) => e[0]), 0.36), ...marks(ends.map((e) => e[1]), 0.36)], colour: "var(--ink)", width: 1.5, dash: "3 2" },
      { type: "segments", pieces: marks(middle, 0.36), colour: "var(--ink)", width: 2.5 },
      { type: "points", xs: chosen, ys: chosen.map((_, k) => k), colour: thetaColour(this.level), size: 5, edge: "var(--ink)" },
    );
    return {
      x: span,
      y: [codes.length - 0.5, -0.5],
      yNames: names,
      xLabel: this.target,
      yLabel: column.name,
      layers,
      height: heightOf(codes.length, 34),
      says: `Quantiles of ${this.target} for each ${column.name}; the middle is ${names.map((name, k) => `${say(middle[k])} for ${name}`).join(", ")}.`,
    };
  }

  whatIf() {
    if (this.d < 2) return null;
    const node = card("What if one input changed?", "One picture for each input, all on the same scale: the middle and the interval, the dot is where you are.", "wide");
    const grid = el("div", { class: "small-charts" });
    const shown = this.order.slice(0, 6);
    const charts = shown.map((j) => {
      const holder = el("div", { class: this.columns[j].kind === "choice" ? "names" : "" });
      grid.append(holder);
      return new Chart(holder);
    });
    node.append(grid);
    this.drawn.push(() => {
      const { model } = this;
      const slices = shown.map((j) => {
        const { xs, lefts, sorted } = this.slice(j, 31);
        const ends = lefts.map((left, k) => model.interval(left, this.coverage, sorted[k]));
        return { xs, ends, middle: lefts.map((left, k) => model.quantile(left, clip(0.5, model.low, model.high), sorted[k])) };
      });
      const all = slices.flatMap((slice) => [...slice.middle, ...slice.ends.flat().filter(Number.isFinite)]);
      const y = widened(Math.min(...all), Math.max(...all));
      const here = model.quantile(this.left, clip(0.5, model.low, model.high));
      slices.forEach(({ xs, ends, middle }, k) => {
        const j = shown[k];
        const column = this.columns[j];
        const last = xs.length - 1;
        if (column.kind === "choice") {
          charts[k].draw(this.smallCategories(j, xs, { ends, middle, y }));
          return;
        }
        charts[k].draw({
          x: widened(xs[0], xs[last], 0.02),
          y,
          xDates: column.date,
          xLabel: column.name,
          yLabel: "",
          height: 170,
          layers: [
            { type: "band", xs, low: ends.map((e) => Math.max(e[0], y[0])), high: ends.map((e) => Math.min(e[1], y[1])), colour: "var(--accent)", opacity: 0.2 },
            { type: "line", xs, ys: middle, colour: "var(--accent)", width: 2.2, name: "middle" },
            { type: "points", xs: [this.x[j]], ys: [here], colour: "var(--ink)", size: 4 },
          ],
          says: `If ${column.name} went from ${sayValue(column, xs[0])} to ${sayValue(column, xs[last])}, the middle would go from ${say(middle[0])} to ${say(middle[last])}.`,
        });
      });
    });
    return node;
  }

  /** What a list would change, small: a few categories. @param {number} j @param {Float64Array} codes
   * @param {{ends: number[][], middle: number[], y: [number, number]}} answers @returns {Drawing} */
  smallCategories(j, codes, { ends, middle, y }) {
    const column = this.columns[j];
    const few = categories(column, this.x[j], SMALL_CATEGORIES).filter((code) => codes.includes(code));
    const at = few.map((code) => codes.indexOf(code));
    const names = few.map((code) => sayValue(column, code));
    const here = few.indexOf(this.x[j]);
    return {
      x: y,
      y: [few.length - 0.5, -0.5],
      yNames: names,
      xLabel: "",
      yLabel: codes.length > few.length ? `${column.name} (${few.length} of ${Math.max(column.distinct, column.listed)})` : column.name,
      height: 170,
      layers: [
        ...at.map((i, k) => barAcross(k, Math.max(ends[i][0], y[0]), Math.min(ends[i][1], y[1]), "var(--accent)", 0.2, Math.min(0.3, 0.09 * few.length))),
        { type: "points", xs: at.map((i) => middle[i]), ys: at.map((_, k) => k), colour: "var(--accent)", size: 3.5 },
        { type: "points", xs: [middle[at[here]]], ys: [here], colour: "var(--ink)", size: 4 },
      ],
      says: `If ${column.name} changed, the middle would be ${names.map((name, k) => `${say(middle[at[k]])} for ${name}`).join(", ")}.`,
    };
  }

  reliability() {
    const known = this.payload.reliability;
    if (!known) return null;
    const node = card("Does it keep its word?", "On the rows of this page. On the diagonal, what is promised happens as often as promised. If the model was fitted to these rows, new ones will agree less well.");
    const holder = el("div");
    const stats = statList([["held", "Rows inside their interval"]]);
    node.append(stats.node, holder);
    const chart = new Chart(holder);
    const [levels, below, coverages, held] = [known.levels, known.below, known.coverages, known.held].map(unpack);
    this.drawn.push(() => {
      const share = interpolate(this.coverage, coverages, held);
      const under = interpolate(this.level, levels, below);
      stats.set("held", share, `${percent(share)} of ${plain.format(known.rows)} rows, and ${percent(this.coverage)} were promised`);
      chart.draw({
        x: [0, 1],
        y: [0, 1],
        xTicks: [0, 0.25, 0.5, 0.75, 1],
        yTicks: [0, 0.25, 0.5, 0.75, 1],
        xLabel: "promised share",
        yLabel: "observed share of rows",
        layers: [
          chanceBand(this.payload.chance),
          { type: "line", xs: [0, 1], ys: [0, 1], colour: "var(--soft)", width: 1, dash: "4 4" },
          { type: "line", xs: coverages, ys: held, colour: "var(--ink)", width: 1.6, dash: "5 3", name: "inside the interval" },
          { type: "line", xs: levels, ys: below, colour: "var(--accent)", width: 2.5, name: "below the quantile" },
          { type: "points", xs: [this.level], ys: [under], colour: thetaColour(this.level), size: 6, edge: "var(--ink)" },
          { type: "points", xs: [this.coverage], ys: [share], colour: "var(--ink)", size: 5 },
        ],
        says: `Reliability: ${percent(under)} of the rows lie below their ${percent(this.level)} quantile, ${percent(share)} inside their ${percent(this.coverage)} interval.`,
      });
    });
    node.append(legend(["accent", "rows below the quantile"], ["dashed", "rows inside the interval"], chanceKey(this.payload.chance)));
    return node;
  }
}
