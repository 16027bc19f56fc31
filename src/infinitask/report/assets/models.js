/**
 * What the three models answer, from the curve h(x)(·) of field.js.
 */

// ---------------------------------------------------------------------------------------------------- quantiles
/** Quantiles of every level at every x. */
class Quantiles {
  /** @param {any} exported */
  constructor(exported) {
    this.levels = unpack(exported.levels);
    this.field = new Field(exported.field, this.levels);
    this.low = /** @type {number} */ (exported.support[0]);
    this.high = /** @type {number} */ (exported.support[1]);
    this.rearranged = /** @type {boolean} */ (exported.rearranged);
    const map = exported.calibrated;
    this.calibrated = map && {
      table: { levels: unpack(map.asked), values: unpack(map.taken) },
      low: /** @type {number} */ (map.low),
      high: /** @type {number} */ (map.high),
      slopes: /** @type {[number, number]} */ (map.slopes),
      least: /** @type {number} */ (map.least_spread),
    };
    const conformal = exported.conformal;
    this.conformal = conformal && { scores: unpack(conformal.scores), scale: /** @type {number} */ (conformal.scale) };
  }

  /** left(x). @param {Numbers} x */
  left(x) {
    return this.field.left(x);
  }

  /** h(x)(·), sorted, before levels are calibrated. @param {Float64Array} left @returns {Curve} */
  sorted(left) {
    const values = this.field.curve(left, this.levels);
    for (let j = 1; j < values.length; j++) {
      if (values[j] < values[j - 1]) return { levels: this.levels, values: values.sort() };
    }
    return { levels: this.levels, values };
  }

  /** Calibrated: Q at g(level), a straight line beyond. @param {(level: number) => number} Q @param {number} level */
  moved(Q, level) {
    const map = this.calibrated;
    if (!map) return Q(level);
    const taken = curveAt(map.table, level);
    const inside = clip(taken, map.low, map.high);
    if (taken === inside) return Q(inside);
    const width = map.high - map.low;
    const spread = Math.max(Q(map.low + width * 0.75) - Q(map.low + width * 0.25), map.least);
    return Q(inside) + spread * (taken - inside) * (taken < inside ? map.slopes[0] : map.slopes[1]);
  }

  /** The quantile function that distributions come from. @param {Float64Array} left @returns {Curve} */
  curve(left) {
    const plain = this.sorted(left);
    if (!this.calibrated) return plain;
    const values = this.levels.map((level) => this.moved((at) => curveAt(plain, at), level));
    return { levels: this.levels, values };
  }

  /** `predict(x, level)`; a sorted curve may be passed where it is known. @param {Float64Array} left
   * @param {number} level @param {Curve} [known] */
  quantile(left, level, known) {
    const plain = this.rearranged ? (known ?? this.sorted(left)) : null;
    return this.moved((at) => (plain ? curveAt(plain, at) : this.field.value(left, at)), level);
  }

  /** `predict_interval(x, coverage)`. @param {Float64Array} left @param {number} coverage @param {Curve} [known]
   * @returns {[number, number]} */
  interval(left, coverage, known) {
    if (this.conformal) return this.conformalInterval(this.curve(left), coverage);
    const plain = this.rearranged ? (known ?? this.sorted(left)) : undefined;
    const [a, b] = [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage].map((end) => Math.round(end * 1e15) / 1e15);
    return [this.quantile(left, a, plain), this.quantile(left, b, plain)];
  }

  /** @param {Curve} curve @param {number} coverage @returns {[number, number]} */
  conformalInterval(curve, coverage) {
    const { scores, scale } = /** @type {{scores: Float64Array, scale: number}} */ (this.conformal);
    const k = Math.ceil((scores.length + 1) * coverage * (1 - 1e-12));
    if (k > scores.length) return [-Infinity, Infinity];
    const radius = scores[k - 1] * (1 + 1e-12) + 1e-12;
    const { levels, values } = curve;
    const last = levels.length - 1;
    const spread = (values[last] - values[0]) / (levels[last] - levels[0] || 1);
    const slope = spread > 1e-6 * scale ? spread : scale;
    /** @param {number} side */
    const end = (side) => {
      const level = 0.5 + side * radius;
      const value = curveAt(curve, level) + slope * (level - clip(level, levels[0], levels[last]));
      return value + side * 1e-12 * (Math.abs(value) + slope);
    };
    return [end(-1), end(1)];
  }

  /** P(Y ≤ y). @param {Curve} curve @param {number} y */
  cdf(curve, y) {
    if (y < curve.values[0]) return 0;
    return y >= curve.values[curve.values.length - 1] ? 1 : inverse(curve, y);
  }

  /** The density at y, from the slope of the cdf over a window. @param {Curve} curve @param {number} y */
  pdf(curve, y) {
    const { levels, values } = curve;
    const last = levels.length - 1;
    const [low, high, first, end] = [levels[0], levels[last], values[0], values[last]];
    const quartiles = curveAt(curve, low + (high - low) * 0.75) - curveAt(curve, low + (high - low) * 0.25);
    const delta = Math.max(0.1 * quartiles, 0.005 * (end - first));
    if (y < first || y > end) return 0;
    /** @param {number} z */
    const reflected = (z) => {
      if (z < first) return 2 * low - inverse(curve, 2 * first - z);
      return z > end ? 2 * high - inverse(curve, 2 * end - z) : inverse(curve, z);
    };
    return delta > 0 ? Math.max(reflected(y + delta) - reflected(y - delta), 0) / (2 * delta) : Infinity;
  }
}

// -------------------------------------------------------------------------------------------------------- costs
/** Decisions for every trade-off between the two errors. */
class Decisions {
  /** @param {any} exported */
  constructor(exported) {
    this.levels = unpack(exported.levels);
    this.field = new Field(exported.field, this.levels);
    this.low = /** @type {number} */ (exported.support[0]);
    this.high = /** @type {number} */ (exported.support[1]);
    const shift = exported.shift;
    this.shiftAt = shift && { levels: unpack(shift.levels), values: unpack(shift.values) };
    this.shifts = this.levels.map((level) => this.shift(level));
    this.samples = /** @type {number} */ (exported.samples);
  }

  /** What was added to decisions last. @param {number} theta */
  shift(theta) {
    return this.shiftAt ? interpolate(theta, this.shiftAt.levels, this.shiftAt.values) : 0;
  }

  /** left(x). @param {Numbers} x */
  left(x) {
    return this.field.left(x);
  }

  /** `decision_function(x, θ)`, positive for a case. @param {Float64Array} left @param {number} theta */
  decision(left, theta) {
    return this.field.value(left, theta) + this.shift(theta);
  }

  /** Decisions at all levels. @param {Float64Array} left */
  curve(left) {
    const values = this.field.curve(left, this.levels);
    for (let j = 0; j < values.length; j++) values[j] += this.shifts[j];
    return values;
  }

  /** P(case | x). @param {Float64Array} left */
  probability(left) {
    const least = 1 / (this.samples + 2);
    const p = clip(0.5 - 0.5 * signChange(this.levels, this.curve(left), -1), least, 1 - least);
    if (this.low > 0 || this.high < 0) return p;
    return this.decision(left, 0) > 0 ? Math.max(p, 0.5 + 2 ** -53) : Math.min(p, 0.5);
  }
}

// --------------------------------------------------------------------------------------------------- level sets
const FAR = 1e-3;

/** Sets that leave out a fraction of the rows, for every fraction. */
class LevelSets {
  /** @param {any} exported */
  constructor(exported) {
    this.levels = unpack(exported.levels);
    this.field = new Field(exported.field, this.levels);
    this.low = /** @type {number} */ (exported.support[0]);
    this.high = /** @type {number} */ (exported.support[1]);
    this.nested = /** @type {boolean} */ (exported.nested);
    this.nu = /** @type {number} */ (exported.nu);
    const shift = exported.shift;
    this.shiftAt = shift && { levels: unpack(shift.levels), values: unpack(shift.values) };
    this.shifts = this.levels.map((level) => this.shift(level));
    // where points beyond all sets, and deep inside all sets, are put in order
    this.first = this.nested ? this.levels : this.levels.slice(0, 1);
    this.last = this.nested ? this.levels : this.levels.slice(-1);
    this.deepest = exported.deepest ? unpack(exported.deepest) : null;
  }

  /** What was added to the threshold last. @param {number} nu */
  shift(nu) {
    return this.shiftAt ? interpolate(nu, this.shiftAt.levels, this.shiftAt.values) : 0;
  }

  /** left(x). @param {Numbers} x */
  left(x) {
    return this.field.left(x);
  }

  /** h − t at all levels; in order if nested. @param {Float64Array} left */
  curve(left) {
    const values = this.field.curve(left, this.levels);
    for (let j = 0; j < values.length; j++) values[j] -= this.shifts[j];
    return this.nested ? values.sort().reverse() : values;
  }

  /** `decision_function(x, ν)`: inside where it is at least 0. @param {Float64Array} left @param {number} nu */
  decision(left, nu) {
    if (!this.nested) return this.field.value(left, nu) - this.shift(nu);
    const values = this.curve(left);
    const found = values[0] >= 0 ? clip(signChange(this.levels, values), this.low, this.high) : -Infinity;
    const value = curveAt({ levels: this.levels, values }, clip(nu, this.low, this.high));
    return nu <= found ? Math.max(value, 0) : Math.min(value, -Number.MIN_VALUE);
  }

  /** `score_samples(x)`: the fraction at which x leaves, its p-value. @param {Numbers} x @param {Float64Array} [known] */
  score(x, known) {
    const left = known ?? this.left(x);
    const values = this.curve(left);
    const last = this.levels.length - 1;
    let found, outside, inside;
    if (this.nested) {
      found = clip(signChange(this.levels, values), this.low, this.high);
      [outside, inside] = [values[0] < 0, values[last] >= 0];
    } else {
      [found, outside, inside] = changeNextTo(this.nu, this.levels, values);
    }
    if (outside) return Math.min(this.low * this.outside(x, left), this.low);
    if (inside && this.high < 1) {
      const ratio = this.ratio(left, this.last, false);
      return Math.max(1 - (1 - this.high) / Math.max(ratio, 1), this.high);
    }
    return found;
  }

  /** The largest (or smallest) h/t over levels. @param {Float64Array} left @param {Float64Array} levels
   * @param {boolean} largest */
  ratio(left, levels, largest) {
    const h = this.field.curve(left, levels, false);
    const t = Array.from(levels, (level) => this.shift(level) - this.field.bias(level));
    const scale = Math.max(...t.map(Math.abs)) || 1;
    const positive = Math.min(...t) > 0;
    const ratios = t.map((at, j) => (positive ? h[j] / at : 1 + (h[j] - at) / scale));
    return largest ? Math.max(...ratios) : Math.min(...ratios);
  }

  /** From 1 at the boundary to 0 at infinity. @param {Numbers} x @param {Float64Array} left */
  outside(x, left) {
    const ratio = this.ratio(left, this.first, true);
    return ratio < FAR ? FAR * this.gauge(x, ratio) : ratio;
  }

  /** The share of the way from the deepest row to x at which the ratio is FAR. @param {Numbers} x
   * @param {number} ratio */
  gauge(x, ratio) {
    const centre = this.deepest;
    const top = centre ? this.ratio(this.left(centre), this.first, true) : 0;
    if (!centre || top <= FAR) return ratio > 0 ? Math.max(ratio / FAR, 2e-290) : 1e-290 / (1 - Math.min(ratio, 0));
    let [near, atNear, end, atEnd] = [0, top, 1, ratio];
    for (let step = 0; step < 340 + 12; step++) {
      if (step < 340 && near !== 0) continue;
      const middle = 0.5 * (near + end);
      const point = centre.map((c, i) => c + middle * (x[i] - c));
      const found = this.ratio(this.left(point), this.first, true);
      if (found >= FAR) [near, atNear] = [middle, found];
      else [end, atEnd] = [middle, found];
    }
    const [start, stop, level] = atEnd > 0 ? [atNear, atEnd, FAR].map(Math.log) : [atNear, atEnd, FAR];
    return near + clip((start - level) / (start - stop), 0, 1) * (end - near);
  }
}

/**
 * Where a curve changes its sign next to ν, whether it is negative up to ν, and whether it is nowhere from ν on.
 * @param {number} nu @param {Float64Array} levels @param {Float64Array} values @returns {[number, boolean, boolean]}
 */
function changeNextTo(nu, levels, values) {
  const at = levels.indexOf(nu);
  const inside = values[at] >= 0;
  const step = inside ? 1 : -1;
  const end = inside ? levels.length : -1;
  let k = at;
  while (k !== end && values[k] >= 0 === inside) k += step;
  const stays = k === end;
  let found = levels[inside ? levels.length - 1 : 0];
  if (!stays) {
    const [v0, v1] = [values[k - step], values[k]];
    const share = v0 !== v1 ? clip(v0 / (v0 - v1), 0, 1) : 0;
    found = levels[k - step] + share * (levels[k] - levels[k - step]);
  }
  return [inside ? Math.max(found, nu) : Math.min(found, nu), stays && !inside, stays && inside];
}
