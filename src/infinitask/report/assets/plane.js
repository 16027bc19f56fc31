/** A map over two inputs. */

/** A map over two of at least two inputs, the others as they are: answers on a grid, found in slices of a few milliseconds. */
class Plane {
  /** @param {Explorer} explorer @param {(left: Float64Array, encoded: Numbers) => number} share The colour of a point, in [0, 1].
   * @param {() => void} ready */
  constructor(explorer, share, ready) {
    this.explorer = explorer;
    this.share = share;
    this.ready = ready;
    const [a, b] = explorer.numbers;
    this.axes = explorer.numbers.length === 2 ? [Math.min(a, b), Math.max(a, b)] : [a, b];
    this.n = 41;
    this.key = "";
    this.job = 0;
    this.xs = new Float64Array(0);
    this.ys = new Float64Array(0);
    /** @type {Float64Array[]} */
    this.lefts = [];
    /** @type {Float64Array | null} */
    this.shares = null;
    /** @type {string} */
    this.picture = "";
    this.note = el("p", { class: "note" });
  }

  /** @returns {HTMLElement} */
  controls() {
    const { explorer } = this;
    if (explorer.numbers.length < 3) return el("div");
    const choose = [0, 1].map((k) =>
      choice(`axis-${k}`, k ? "Upwards" : "Across", explorer.choices(explorer.numbers), String(this.axes[k]), (value) => {
        const before = this.axes[k];
        this.axes[k] = Number(value);
        if (this.axes[1 - k] === this.axes[k]) {
          this.axes[1 - k] = before;
          /** @type {HTMLSelectElement} */ (choose[1 - k].querySelector("select")).value = String(before);
        }
        explorer.redraw();
      }),
    );
    return el("div", { class: "choices" }, ...choose);
  }

  /** Whether the grid is that of now; if not, work begins and `ready` is called when it is done. */
  current() {
    const { explorer, n } = this;
    const [a, b] = this.axes;
    const others = Array.from(explorer.x, (v, j) => (j === a || j === b ? "" : v)).join();
    const key = `${a} ${b} ${others} ${isDark()}`;
    if (key === this.key) return this.shares !== null;
    this.key = key;
    const { rows, d } = explorer;
    let absent = 0;
    for (let i = 0; i < rows.count; i++) if (Number.isNaN(rows.X[i * d + a] + rows.X[i * d + b])) absent++;
    this.note.textContent = absent ? `${plain.format(absent)} ${absent === 1 ? "row has" : "rows have"} no value of one of the two and cannot be drawn.` : "";
    this.shares = null;
    const job = ++this.job;
    const [low, high] = [a, b].map((j) => explorer.columns[j]).map((c) => widened(c.low, c.high));
    this.xs = evenly(low[0], low[1], n);
    this.ys = evenly(high[0], high[1], n);
    const count = this.xs.length * this.ys.length;
    /** @type {Float64Array[]} */
    const lefts = new Array(count);
    const shares = new Float64Array(count);
    let at = 0;
    const x = Float64Array.from(explorer.x);
    const work = () => {
      if (job !== this.job) return;
      const until = performance.now() + 14;
      while (at < count && performance.now() < until) {
        x[b] = this.ys[Math.floor(at / n)];
        x[a] = this.xs[at % n];
        const encoded = explorer.encoder.encode(x);
        lefts[at] = explorer.anyModel.left(encoded);
        shares[at] = this.share(lefts[at], encoded);
        at++;
      }
      if (at < count) setTimeout(work);
      else {
        this.lefts = lefts;
        this.shares = shares;
        this.picture = heat(shares, n);
        this.ready();
      }
    };
    setTimeout(work);
    return false;
  }

  /** Pieces of the line on which a function of left(x) is 0. @param {(left: Float64Array, share: number) => number} value */
  boundary(value) {
    const shares = /** @type {Float64Array} */ (this.shares);
    return contour(this.xs, this.ys, Float64Array.from(this.lefts, (left, k) => value(left, shares[k])));
  }
}
