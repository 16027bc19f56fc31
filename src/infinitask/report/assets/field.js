/**
 * The function that was learnt, evaluated in the page: h(x)(θ) = left(x)·ψ(θ) + b(θ), with left(x) = k(x, Z)(T C).
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

// ----------------------------------------------------------------------------------------------------- features
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

