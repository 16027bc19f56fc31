/**
 * The model, evaluated in the page: h(x)(θ) = left(x)·ψ(θ) + b(θ), with left(x) = k(x, Z)(T C).
 *
 * Every function here does what the Python function of the same name does, in the same order of operations, so that
 * answers agree to rounding. Arrays are Float64Array, matrices are row after row.
 */

/** @typedef {{shape: number[], data: string}} Packed An array of float64, little-endian, in base64. */
/** @typedef {ArrayLike<number>} Numbers */
/** @typedef {(x: Numbers, out: Float64Array) => void} Columns Fills k(x, z_j) for all landmarks z_j. */
/** @typedef {{levels: Float64Array, values: Float64Array}} Curve Values at ascending levels, linear in between. */

/** @param {Packed} packed */
function unpack(packed) {
  const text = atob(packed.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Float64Array(bytes.buffer);
}

/** @param {number} value @param {number} low @param {number} high */
function clip(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/** @param {Float64Array} matrix @param {number} row @param {number} width */
function rowOf(matrix, row, width) {
  return matrix.subarray(row * width, (row + 1) * width);
}

/** @param {Numbers} a @param {Numbers} b */
function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/**
 * How many ascending values are below `at` ("left"), or at most `at` ("right").
 * @param {Numbers} values @param {number} at @param {"left" | "right"} side
 */
function search(values, at, side) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (side === "right" ? values[middle] <= at : values[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Linear between points, constant beyond the ends. @param {number} at @param {Numbers} xs @param {Numbers} ys */
function interpolate(at, xs, ys) {
  const last = xs.length - 1;
  if (last === 0 || at <= xs[0]) return ys[0];
  if (at >= xs[last]) return ys[last];
  const right = clip(search(xs, at, "right"), 1, last);
  const share = (at - xs[right - 1]) / (xs[right] - xs[right - 1]);
  return ys[right - 1] + share * (ys[right] - ys[right - 1]);
}

// ------------------------------------------------------------------------------------------------ input kernels
/**
 * x ↦ k(x, Z) for p landmarks with d inputs each.
 * @param {any} kernel @param {Float64Array} Z @param {number} p @param {number} d @returns {Columns}
 */
function towards(kernel, Z, p, d) {
  /** @param {Numbers} x @param {number} j */
  const squares = (x, j) => {
    let sum = 0;
    for (let i = 0, at = j * d; i < d; i++, at++) {
      const away = x[i] - Z[at];
      sum += away * away;
    }
    return sum;
  };
  /** @param {Numbers} x @param {number} j */
  const product = (x, j) => {
    let sum = 0;
    for (let i = 0, at = j * d; i < d; i++, at++) sum += x[i] * Z[at];
    return sum;
  };
  /** @param {(x: Numbers, j: number) => number} value @returns {Columns} */
  const each = (value) => (x, out) => {
    for (let j = 0; j < p; j++) out[j] = value(x, j);
  };
  const gamma = kernel.gamma;
  switch (kernel.type) {
    case "rbf":
      return each((x, j) => Math.exp(-gamma * squares(x, j)));
    case "matern":
      return each((x, j) => {
        const r = Math.sqrt(4 * kernel.nu * gamma * squares(x, j));
        const polynomial = kernel.nu === 0.5 ? 1 : kernel.nu === 1.5 ? 1 + r : 1 + r + (r * r) / 3;
        return polynomial * Math.exp(-r);
      });
    case "laplacian":
      return each((x, j) => {
        let sum = 0;
        for (let i = 0; i < d; i++) sum += Math.abs(x[i] - Z[j * d + i]);
        return Math.exp(-gamma * sum);
      });
    case "chi2":
      return each((x, j) => {
        let sum = 0;
        for (let i = 0; i < d; i++) {
          const total = x[i] + Z[j * d + i];
          const away = x[i] - Z[j * d + i];
          if (total !== 0) sum += away * (away / total);
        }
        return Math.exp(-gamma * sum);
      });
    case "linear":
      return each(product);
    case "polynomial":
      return each((x, j) => (gamma * product(x, j) + kernel.coef0) ** kernel.degree);
    case "sum":
    case "product": {
      const [left, right] = [towards(kernel.left, Z, p, d), towards(kernel.right, Z, p, d)];
      const other = new Float64Array(p);
      const adds = kernel.type === "sum";
      return (x, out) => {
        left(x, out);
        right(x, other);
        for (let j = 0; j < p; j++) out[j] = adds ? out[j] + other[j] : out[j] * other[j];
      };
    }
    case "additive": {
      const parts = /** @type {any[]} */ (kernel.parts).map((part, i) => {
        const column = Float64Array.from({ length: p }, (_, j) => Z[j * d + i]);
        return towards(part, column, p, 1);
      });
      const other = new Float64Array(p);
      return (x, out) => {
        out.fill(0);
        parts.forEach((part, i) => {
          part([x[i]], other);
          for (let j = 0; j < p; j++) out[j] += other[j];
        });
        for (let j = 0; j < p; j++) out[j] /= d;
      };
    }
    default: {
      // kernels of changed inputs: k₀(g(x), g(z))
      const [change, width] = changeOf(kernel, d);
      const changed = new Float64Array(p * width);
      for (let j = 0; j < p; j++) changed.set(change(rowOf(Z, j, d)), j * width);
      const inner = towards(kernel.kernel, changed, p, width);
      return (x, out) => inner(change(x), out);
    }
  }
}

/**
 * g of a kernel k₀(g(x), g(z)), and how many numbers it returns.
 * @param {any} kernel @param {number} d @returns {[(x: Numbers) => Float64Array, number]}
 */
function changeOf(kernel, d) {
  if (kernel.type === "scaled") {
    const scales = unpack(kernel.scales);
    return [(x) => scales.map((scale, i) => x[i] * scale), d];
  }
  if (kernel.type === "metric") {
    const root = unpack(kernel.root);
    const width = root.length / d;
    return [
      (x) => {
        const turned = new Float64Array(width);
        for (let i = 0; i < d; i++) for (let j = 0; j < width; j++) turned[j] += x[i] * root[i * width + j];
        return turned;
      },
      width,
    ];
  }
  if (kernel.type === "warped") {
    const columns = /** @type {Packed[][]} */ (kernel.columns).map((pair) => pair.map(unpack));
    return [(x) => Float64Array.from(columns, ([values, scores], i) => interpolate(x[i], values, scores)), d];
  }
  throw new Error(`This page does not know the kernel "${kernel.type}".`);
}

/** x ↦ left(x), s numbers: what of x an answer needs. @param {any} map @returns {(x: Numbers) => Float64Array} */
function leftOf(map) {
  const right = unpack(map.transform);
  const s = map.transform.shape[1];
  /** @type {Columns} */
  let features;
  const count = map.transform.shape[0];
  if (map.type === "fourier") {
    const W = unpack(map.frequencies);
    const [d, q] = map.frequencies.shape;
    features = (x, out) => {
      for (let j = 0; j < q; j++) {
        let angle = 0;
        for (let i = 0; i < d; i++) angle += x[i] * W[i * q + j];
        out[j] = Math.cos(angle) / Math.sqrt(q);
        out[q + j] = Math.sin(angle) / Math.sqrt(q);
      }
    };
  } else {
    const [p, d] = map.landmarks.shape;
    features = towards(map.kernel, unpack(map.landmarks), p, d);
  }
  const values = new Float64Array(count);
  return (x) => {
    features(x, values);
    const left = new Float64Array(s);
    for (let j = 0, at = 0; j < count; j++) {
      const value = values[j];
      for (let k = 0; k < s; k++, at++) left[k] += value * right[at];
    }
    return left;
  };
}

// ------------------------------------------------------------------------------------------------- task kernels
/** k(s, t), or ∂₂k(s, t) for `order` 1. @param {any} kernel @param {number} s @param {number} t @param {number} order */
function taskKernel(kernel, s, t, order) {
  switch (kernel.type) {
    case "gaussian": {
      const a = Math.sqrt(kernel.gamma);
      const v = a * (s - t);
      const bell = Math.exp(-v * v);
      return order === 0 ? bell : -a * (-2 * v * bell);
    }
    case "matern": {
      const a = Math.sqrt(4 * kernel.nu * kernel.gamma);
      const v = a * (s - t);
      const r = Math.abs(v);
      const fall = Math.exp(-r);
      if (kernel.nu === 1.5) return order === 0 ? (1 + r) * fall : a * v * fall;
      return order === 0 ? ((3 + 3 * r + r * r) * fall) / 3 : (a * v * (1 + r) * fall) / 3;
    }
    case "polynomial": {
      const base = s * t + kernel.coef0;
      return order === 0 ? base ** kernel.degree : kernel.degree * base ** (kernel.degree - 1) * s;
    }
    case "constant":
      return order === 0 ? 1 : 0;
    case "piecewise-linear":
      return Math.min(s, t) + kernel.offset;
    default:
      throw new Error(`This page does not know the task kernel "${kernel.type}".`);
  }
}

/** θ ↦ ψ(θ). @param {any} map @returns {(theta: number) => Float64Array} */
function taskMap(map) {
  if (map.type === "nodes") {
    const nodes = unpack(map.nodes);
    return (theta) => {
      const out = new Float64Array(nodes.length);
      if (nodes.length === 1) return out.fill(1);
      const right = clip(search(nodes, theta, "left"), 1, nodes.length - 1);
      const share = (theta - nodes[right - 1]) / (nodes[right] - nodes[right - 1]);
      out[right - 1] = 1 - share;
      out[right] = share;
      return out;
    };
  }
  const blocks = /** @type {any[]} */ (map.landmarks).map((block) => ({ nodes: unpack(block.nodes), order: block.order }));
  const transform = unpack(map.transform);
  const s = map.transform.shape[1];
  const rest = map.rest ? { map: taskMap(map.rest.map), right: unpack(map.rest.right) } : null;
  /** @param {Numbers} features @param {Float64Array} matrix @param {Float64Array} out */
  const add = (features, matrix, out) => {
    for (let j = 0; j < features.length; j++) for (let k = 0; k < s; k++) out[k] += features[j] * matrix[j * s + k];
  };
  return (theta) => {
    const out = new Float64Array(s);
    const columns = blocks.flatMap(({ nodes, order }) =>
      Array.from(nodes, (node) => taskKernel(map.kernel, theta, node, order)),
    );
    add(columns, transform, out);
    if (rest) add(rest.map(theta), rest.right, out);
    return out;
  };
}

// ---------------------------------------------------------------------------------------------------- the field
/** The learnt function h(x)(θ). */
class Field {
  /** @param {any} exported @param {Float64Array} levels Levels that are asked together. */
  constructor(exported, levels) {
    this.left = leftOf(exported.left);
    this.formula = taskMap(exported.psi);
    this.offset = /** @type {number} */ (exported.offset);
    this.biasPsi = exported.bias ? taskMap(exported.bias.psi) : null;
    this.biasCoef = exported.bias ? unpack(exported.bias.coef) : null;
    // ψ and b as Python has them at levels that are asked most: rounding decides the last digits of p-values
    const single = exported.single;
    const psi = unpack(single.psi);
    const bias = unpack(single.bias);
    /** @type {Map<number, {psi: Float64Array, bias: number}>} */
    this.known = new Map();
    unpack(single.levels).forEach((level, j) => {
      this.known.set(level, { psi: rowOf(psi, j, single.psi.shape[1]), bias: bias[j] });
    });
    // all rows are asked at a few θ, one after the other
    /** @type {Map<number, {psi: Float64Array, bias: number}>} */
    this.recent = new Map();
    /** @type {Map<Float64Array, {psi: Float64Array, bias: Float64Array, s: number}>} */
    this.kept = new Map();
    const together = exported.together;
    this.kept.set(levels, { psi: unpack(together.psi), bias: unpack(together.bias), s: together.psi.shape[1] });
  }

  /** ψ(θ) and b(θ). @param {number} theta */
  task(theta) {
    const known = this.known.get(theta) ?? this.recent.get(theta);
    if (known) return known;
    const bias = this.offset + (this.biasPsi && this.biasCoef ? dot(this.biasPsi(theta), this.biasCoef) : 0);
    const found = { psi: this.formula(theta), bias };
    if (this.recent.size > 300) this.recent.clear();
    this.recent.set(theta, found);
    return found;
  }

  /** ψ(θ). @param {number} theta */
  psi(theta) {
    return this.task(theta).psi;
  }

  /** b(θ). @param {number} theta */
  bias(theta) {
    return this.task(theta).bias;
  }

  /** h(x)(θ) from left(x). @param {Float64Array} left @param {number} theta */
  value(left, theta) {
    const { psi, bias } = this.task(theta);
    return dot(left, psi) + bias;
  }

  /** ψ and b at levels that are asked again and again. @param {Float64Array} levels */
  at(levels) {
    let known = this.kept.get(levels);
    if (!known) {
      const rows = Array.from(levels, (level) => this.psi(level));
      const s = rows[0].length;
      const psi = new Float64Array(levels.length * s);
      rows.forEach((row, j) => psi.set(row, j * s));
      known = { psi, bias: Float64Array.from(levels, (level) => this.bias(level)), s };
      this.kept.set(levels, known);
    }
    return known;
  }

  /** h(x)(·) at levels. @param {Float64Array} left @param {Float64Array} levels @param {boolean} [biased] */
  curve(left, levels, biased = true) {
    const { psi, bias, s } = this.at(levels);
    const values = new Float64Array(levels.length);
    for (let j = 0, at = 0; j < levels.length; j++) {
      let sum = 0;
      for (let k = 0; k < s; k++, at++) sum += left[k] * psi[at];
      values[j] = biased ? sum + bias[j] : sum;
    }
    return values;
  }
}

/** @param {number} low @param {number} high @param {number} count */
function evenly(low, high, count) {
  const step = (high - low) / (count - 1);
  return Float64Array.from({ length: count }, (_, j) => (j === count - 1 ? high : low + j * step));
}

/** A curve in order at a level. @param {Curve} curve @param {number} level */
function curveAt(curve, level) {
  const { levels, values } = curve;
  const last = levels.length - 1;
  const right = clip(search(levels, level, "left"), Math.min(1, last), last);
  const left = Math.max(right - 1, 0);
  const width = levels[right] - levels[left];
  const share = clip(width > 0 ? (level - levels[left]) / width : 0, 0, 1);
  return share < 1 ? values[left] + share * (values[right] - values[left]) : values[right];
}

/** The first or last level at which an ascending curve is y. @param {Curve} curve @param {number} y
 * @param {"left" | "right"} [side] */
function inverse(curve, y, side = "right") {
  const { levels, values } = curve;
  const count = search(values, y, side);
  const right = clip(count, 1, levels.length - 1);
  const [start, end] = [values[right - 1], values[right]];
  const share = end > start ? (y - start) / (end - start) : count === levels.length ? 1 : 0;
  const width = levels[right] - levels[right - 1];
  return Math.min(levels[right - 1] + clip(share, 0, 1) * width, levels[right]);
}

/** θ* of a curve that falls through zero. @param {Float64Array} levels @param {Float64Array} values @param {number} [sign] */
function signChange(levels, values, sign = 1) {
  let total = 0;
  for (let j = 0; j + 1 < levels.length; j++) {
    const [a, b] = [sign * values[j], sign * values[j + 1]];
    const [top, bottom] = [Math.max(a, b), Math.min(a, b)];
    const share = top > bottom ? clip(top / (top - bottom), 0, 1) : top >= 0 ? 1 : 0;
    total += share * (levels[j + 1] - levels[j]);
  }
  return levels[0] + total;
}

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
