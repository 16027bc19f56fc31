/**
 * Kernels, evaluated from their descriptions: an operation (`kind`), its numbers, and the kernels inside (`parts`).
 *
 * A kernel of kind "function" is f(u) for a number s(x, z) of the pair, with u = factor·γ·s + offset or the root of it.
 * f(u) is Σ u^i/series[i] · exp(−u), or u^power if there is no series.
 */

/** @typedef {(x: Numbers, Z: Numbers, at: number, d: number) => number} Statistic */

/** s(x, z) for the row z of Z that begins at a place. */
/** @type {Record<string, Statistic>} */
const STATISTICS = {
  squared: (x, Z, at, d) => {
    let sum = 0;
    for (let i = 0; i < d; i++) {
      const away = x[i] - Z[at + i];
      sum += away * away;
    }
    return sum;
  },
  l1: (x, Z, at, d) => {
    let sum = 0;
    for (let i = 0; i < d; i++) sum += Math.abs(x[i] - Z[at + i]);
    return sum;
  },
  chi2: (x, Z, at, d) => {
    let sum = 0;
    for (let i = 0; i < d; i++) {
      const total = x[i] + Z[at + i];
      const away = x[i] - Z[at + i];
      if (total !== 0) sum += away * (away / total);
    }
    return sum;
  },
  product: (x, Z, at, d) => {
    let sum = 0;
    for (let i = 0; i < d; i++) sum += x[i] * Z[at + i];
    return sum;
  },
  minimum: (x, Z, at) => Math.min(x[0], Z[at]),
};

/** u, from s. @param {any} kernel @param {number} s */
function argumentOf(kernel, s) {
  const scaled = kernel.factor * kernel.gamma * s;
  return (kernel.root ? Math.sqrt(scaled) : scaled) + kernel.offset;
}

/** f(u). @param {any} kernel @param {number} u */
function profile(kernel, u) {
  const series = /** @type {number[]} */ (kernel.series);
  if (series.length === 0) return u ** kernel.power;
  let [sum, power] = [1, 1];
  for (let i = 1; i < series.length; i++) {
    power *= u;
    sum += power / series[i];
  }
  return sum * Math.exp(-u);
}

/** The derivative of f. @param {any} kernel @param {number} u */
function profileSlope(kernel, u) {
  const series = /** @type {number[]} */ (kernel.series);
  if (series.length === 0) return kernel.power === 0 ? 0 : kernel.power * u ** (kernel.power - 1);
  let [sum, power] = [0, 1];
  for (let i = 0; i < series.length; i++) {
    const next = i + 1 < series.length ? (i + 1) / series[i + 1] : 0;
    sum += power * (next - 1 / series[i]);
    power *= u;
  }
  return sum * Math.exp(-u);
}

/** k(s, t) of two tasks on a line, or ∂₂k(s, t) for `order` 1. @param {any} kernel @param {number} s @param {number} t
 * @param {number} order */
function taskKernel(kernel, s, t, order) {
  const u = argumentOf(kernel, STATISTICS[kernel.of]([s], [t], 0, 1));
  if (order === 0) return profile(kernel, u);
  const rate = kernel.factor * kernel.gamma;
  if (kernel.of === "product") return profileSlope(kernel, u) * rate * s;
  const inner = kernel.root ? -Math.sqrt(rate) * Math.sign(s - t) : -2 * rate * (s - t);
  return inner * profileSlope(kernel, u);
}

/**
 * x ↦ k(x, Z) for p landmarks with d inputs each.
 * @param {any} kernel @param {Float64Array} Z @param {number} p @param {number} d @returns {Columns}
 */
function towards(kernel, Z, p, d) {
  const parts = /** @type {any[]} */ (kernel.parts);
  const other = new Float64Array(p);
  switch (kernel.kind) {
    case "function": {
      const statistic = STATISTICS[kernel.of];
      return (x, out) => {
        for (let j = 0; j < p; j++) out[j] = profile(kernel, argumentOf(kernel, statistic(x, Z, j * d, d)));
      };
    }
    case "sum":
    case "product": {
      const adds = kernel.kind === "sum";
      const [first, ...rest] = parts.map((part) => towards(part, Z, p, d));
      return (x, out) => {
        first(x, out);
        rest.forEach((part) => {
          part(x, other);
          for (let j = 0; j < p; j++) out[j] = adds ? out[j] + other[j] : out[j] * other[j];
        });
      };
    }
    case "each": {
      const each = Array.from({ length: d }, (_, i) => {
        const column = Float64Array.from({ length: p }, (_, j) => Z[j * d + i]);
        return towards(parts[parts.length === 1 ? 0 : i], column, p, 1);
      });
      return (x, out) => {
        out.fill(0);
        each.forEach((part, i) => {
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
      const inner = towards(parts[0], changed, p, width);
      return (x, out) => inner(change(x), out);
    }
  }
}

/**
 * g of a kernel k₀(g(x), g(z)), and how many numbers it returns.
 * @param {any} kernel @param {number} d @returns {[(x: Numbers) => Float64Array, number]}
 */
function changeOf(kernel, d) {
  if (kernel.kind === "scaled") {
    const scales = unpack(kernel.scales);
    return [(x) => scales.map((scale, i) => x[i] * scale), d];
  }
  if (kernel.kind === "metric") {
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
  if (kernel.kind === "ranks") {
    const columns = /** @type {Packed[][]} */ (kernel.ranks).map((pair) => pair.map(unpack));
    return [(x) => Float64Array.from(columns, ([values, scores], i) => interpolate(x[i], values, scores)), d];
  }
  throw new Error(`This page does not know kernels of the kind "${kernel.kind}".`);
}
