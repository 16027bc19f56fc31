/**
 * Charts as SVG: they follow the colours of the page, print sharply and say in words what they show.
 *
 * A chart is drawn from layers, bottom first, each time anew; with a few hundred points that takes about a millisecond.
 */

/** @typedef {{type: "line", xs: Numbers, ys: Numbers, colour: string, width?: number, dash?: string, name?: string,
 *   steps?: boolean}} Line */
/** @typedef {{type: "band", xs: Numbers, low: Numbers, high: Numbers, colour: string, opacity?: number}} Band */
/** @typedef {{type: "points", xs: Numbers, ys: Numbers, colour: string, size?: number, shape?: "dot" | "triangle" | "cross",
 *   opacity?: number, edge?: string}} Points */
/** @typedef {{type: "rule", x?: number, y?: number, colour: string, dash?: string, width?: number}} Rule */
/** @typedef {{type: "image", url: string, x: [number, number], y: [number, number], opacity?: number}} Picture */
/** @typedef {{type: "segments", pieces: number[][], colour: string, width?: number, dash?: string}} Segments */
/** @typedef {{type: "words", xs: Numbers, ys: Numbers, texts: string[]}} Words Beside points, to the right of them. */
/** @typedef {Line | Band | Points | Rule | Picture | Segments | Words} Layer */
/** @typedef {{x: [number, number], y: [number, number], xLabel: string, yLabel: string, layers: Layer[], says: string,
 *   xTicks?: number[], yTicks?: number[], height?: number, xDates?: boolean, yDates?: boolean, yNames?: string[]}} Drawing
 *   `xDates`: numbers are days; `yNames`: of the rows 0, 1, … from the top. */

const PLASMA = ["0d0887", "41049d", "6a00a8", "8f0da4", "b12a90", "cc4778", "e16462", "f2844b", "fca636", "fcce25", "f0f921"];

/** Paper is white, whatever the screen is. */
let printing = false;

/** @returns {boolean} */
function isDark() {
  if (printing) return false;
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The colour of a share in [0, 1] of Θ, without the end that the paper hides. @param {number} share */
function thetaRGB(share) {
  const [start, end] = isDark() ? [0.25, 1] : [0, 0.92];
  const at = clip(start + (end - start) * share, 0, 1) * (PLASMA.length - 1);
  const k = Math.min(Math.floor(at), PLASMA.length - 2);
  return [0, 2, 4].map((i) => {
    const [a, b] = [PLASMA[k], PLASMA[k + 1]].map((colour) => parseInt(colour.slice(i, i + 2), 16));
    return Math.round(a + (at - k) * (b - a));
  });
}

/** @param {number} share */
function thetaColour(share) {
  return `rgb(${thetaRGB(share).join(" ")})`;
}

/** An element of SVG. @param {string} tag @param {Record<string, string | number>} [attributes]
 * @param {Record<string, string>} [style] @returns {SVGElement} */
function svg(tag, attributes = {}, style = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  for (const [name, value] of Object.entries(style)) node.style.setProperty(name, value);
  return node;
}

/** Round places for ticks. @param {number} low @param {number} high @param {number} count */
function niceTicks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = (/** @type {number[]} */ ([1, 2, 2.5, 5, 10]).find((m) => m * power >= rough) ?? 10) * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(k * step);
  return ticks;
}

const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, notation: "compact" });

/** A number with its power of ten written above the line: 4.62 × 10⁻⁶. @param {number} value @param {number} digits */
function powerOfTen(value, digits) {
  const [number, power] = value.toExponential(digits).replace("+", "").split("e");
  const raised = [...power].map((sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)] ?? "⁻").join("");
  return `${number.replace("-", "−")} × 10${raised}`;
}

/** A number as a person reads it. @param {number} value */
function say(value) {
  if (Number.isNaN(value)) return "unknown";
  if (!Number.isFinite(value)) return value > 0 ? "no upper end" : "no lower end";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return powerOfTen(value, 2);
  return plain.format(value).replace("-", "−");
}

/** @param {number} share @param {number} [digits] */
function percent(share, digits = 1) {
  return `${(100 * share).toFixed(digits).replace(/\.0+$/, "")}%`;
}

/** A number beside an axis. @param {number} value @param {number[]} ticks */
function tickText(value, ticks) {
  const size = Math.max(...ticks.map(Math.abs));
  if (size >= 1e5) return short.format(value).replace("-", "−");
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : Math.abs(value) || 1;
  if (size < 1e-3) return Math.abs(value) < 1e-12 * step ? "0" : powerOfTen(value, 1);
  const digits = clip(Math.ceil(-Math.log10(step) - 1e-9) + (Math.abs(step * 10 ** Math.ceil(-Math.log10(step) - 1e-9) % 1) > 1e-9 ? 1 : 0), 0, 6);
  return (Math.abs(value) < 1e-12 * step ? 0 : value).toFixed(digits).replace("-", "−");
}

/** @param {string} text @param {number} letters */
function shortened(text, letters) {
  return text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
}

/** One chart in a holder, drawn again when its width changes. */
class Chart {
  /** @param {HTMLElement} holder */
  constructor(holder) {
    this.holder = holder;
    holder.classList.add("chart");
    /** @type {Drawing | null} */
    this.drawing = null;
    this.width = 0;
    new ResizeObserver(() => {
      if (this.drawing && Math.abs(holder.clientWidth - this.width) > 1) this.draw(this.drawing);
    }).observe(holder);
  }

  /** @param {Drawing} drawing */
  draw(drawing) {
    this.drawing = drawing;
    this.width = this.holder.clientWidth || 320;
    const height = drawing.height ?? 260;
    const root = svg("svg", { viewBox: `0 0 ${this.width} ${height}`, role: "img", "aria-label": drawing.says });
    root.style.height = `${height}px`;
    const rows = height / (height < 200 ? 40 : 55);
    const names = drawing.yNames;
    const yTicks = names?.map((_, k) => k) ?? drawing.yTicks ?? (drawing.yDates ? dateTicks : niceTicks)(drawing.y[0], drawing.y[1], rows);
    const letters = Math.max(3, Math.floor((0.38 * this.width - 18) / 7));
    const yTexts = yTicks.map((tick) => (names ? shortened(names[tick], letters) : drawing.yDates ? dateTickText(tick, yTicks) : tickText(tick, yTicks)));
    const wide = Math.max(...yTexts.map((text) => text.length));
    const box = { left: 18 + 7 * Math.max(wide, 2), right: this.width - 16, top: 20, bottom: height - 38 };
    const [x0, x1] = drawing.x;
    const [y0, y1] = drawing.y;
    /** @param {number} x */
    const px = (x) => box.left + ((x - x0) / (x1 - x0 || 1)) * (box.right - box.left);
    /** @param {number} y */
    const py = (y) => box.bottom - ((y - y0) / (y1 - y0 || 1)) * (box.bottom - box.top);
    const xTicks = drawing.xTicks ?? (drawing.xDates ? dateTicks : niceTicks)(x0, x1, Math.max(2, (box.right - box.left) / (names ? 50 : 75)));
    yTicks.forEach((tick, k) => {
      root.append(svg("line", { x1: box.left, x2: box.right, y1: py(tick), y2: py(tick), class: "grid" }));
      const words = this.text(box.left - 6, py(tick) + 4, yTexts[k], "end");
      if (names && names[tick] !== yTexts[k]) {
        const whole = svg("title");
        whole.textContent = names[tick];
        words.append(whole);
      }
      root.append(words);
    });
    for (const tick of xTicks) {
      root.append(svg("line", { x1: px(tick), x2: px(tick), y1: box.bottom, y2: box.bottom + 4, class: "axis" }));
      root.append(this.text(px(tick), box.bottom + 17, drawing.xDates ? dateTickText(tick, xTicks) : tickText(tick, xTicks), "middle"));
    }
    root.append(svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" }));
    const name = `clip-${Chart.count++}`;
    const frame = svg("clipPath", { id: name });
    frame.append(svg("rect", { x: box.left, y: box.top - 1, width: box.right - box.left, height: box.bottom - box.top + 2 }));
    const inside = svg("g", { "clip-path": `url(#${name})` });
    for (const layer of drawing.layers) inside.append(...this.shapes(layer, px, py, box));
    root.append(frame, inside);
    root.append(this.text((box.left + box.right) / 2, height - 4, drawing.xLabel, "middle", "label"));
    root.append(this.text(2, 12, drawing.yLabel, "start", "label"));
    this.holder.replaceChildren(root);
    const lines = /** @type {Line[]} */ (drawing.layers.filter((layer) => layer.type === "line" && layer.name));
    if (lines.length) this.readOnHover(root, lines, drawing, box, px);
  }

  /** @param {number} x @param {number} y @param {string} words @param {string} anchor @param {string} [kind] */
  text(x, y, words, anchor, kind = "tick") {
    const node = svg("text", { x, y, "text-anchor": anchor, class: kind });
    node.textContent = words;
    return node;
  }

  /** @param {Layer} layer @param {(x: number) => number} px @param {(y: number) => number} py
   * @param {{left: number, right: number, top: number, bottom: number}} box @returns {SVGElement[]} */
  shapes(layer, px, py, box) {
    /** @param {number} value */
    const fix = (value) => clip(value, -1e5, 1e5).toFixed(2);
    switch (layer.type) {
      case "line": {
        let path = "";
        for (let i = 0; i < layer.xs.length; i++) {
          if (layer.steps && i) path += `H${fix(px(layer.xs[i]))}`;
          path += `${path ? "L" : "M"}${fix(px(layer.xs[i]))} ${fix(py(layer.ys[i]))}`;
        }
        const style = { stroke: layer.colour, "stroke-width": `${layer.width ?? 2}`, "stroke-dasharray": layer.dash ?? "none" };
        return [svg("path", { d: path, class: "line" }, style)];
      }
      case "band": {
        let path = "";
        const last = layer.xs.length - 1;
        for (let i = 0; i <= last; i++) path += `${path ? "L" : "M"}${fix(px(layer.xs[i]))} ${fix(py(layer.high[i]))}`;
        for (let i = last; i >= 0; i--) path += `L${fix(px(layer.xs[i]))} ${fix(py(layer.low[i]))}`;
        return [svg("path", { d: `${path}Z` }, { fill: layer.colour, "fill-opacity": `${layer.opacity ?? 0.3}`, stroke: "none" })];
      }
      case "points": {
        const r = layer.size ?? 2.5;
        let path = "";
        for (let i = 0; i < layer.xs.length; i++) {
          const [x, y] = [px(layer.xs[i]), py(layer.ys[i])];
          if (Number.isNaN(x) || Number.isNaN(y)) continue; // a missing value has no place
          if (layer.shape === "triangle") path += `M${fix(x)} ${fix(y - 1.2 * r)}l${r} ${1.9 * r}h${-2 * r}Z`;
          else if (layer.shape === "cross") path += `M${fix(x - r)} ${fix(y - r)}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`;
          else path += `M${fix(x - r)} ${fix(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
        }
        const cross = layer.shape === "cross";
        const open = layer.colour === "none";
        const style = {
          fill: cross ? "none" : layer.colour,
          stroke: cross ? layer.colour : (layer.edge ?? "none"),
          "stroke-width": cross ? "1.8" : open ? "1" : "1.6",
          "paint-order": cross || open ? "normal" : "stroke", // an edge stays behind, also that of a neighbour
          opacity: `${layer.opacity ?? 1}`,
        };
        return [svg("path", { d: path }, style)];
      }
      case "words":
        return layer.texts.map((words, i) => this.text(px(layer.xs[i]) + 6, py(layer.ys[i]) + 4, words, "start", "label"));
      case "rule": {
        if (Number.isNaN(layer.x ?? layer.y)) return [];
        const at = layer.x !== undefined ? { x1: px(layer.x), x2: px(layer.x), y1: box.top, y2: box.bottom } : null;
        const across = { x1: box.left, x2: box.right, y1: py(layer.y ?? 0), y2: py(layer.y ?? 0) };
        const style = { stroke: layer.colour, "stroke-width": `${layer.width ?? 1.5}`, "stroke-dasharray": layer.dash ?? "none" };
        return [svg("line", at ?? across, style)];
      }
      case "image": {
        const [left, top] = [px(layer.x[0]), py(layer.y[1])];
        const size = { width: px(layer.x[1]) - left, height: py(layer.y[0]) - top };
        const picture = svg("image", { href: layer.url, x: left, y: top, ...size, preserveAspectRatio: "none" });
        picture.style.opacity = `${layer.opacity ?? 1}`;
        return [picture];
      }
      case "segments": {
        const path = layer.pieces.map(([a, b, c, d]) => `M${fix(px(a))} ${fix(py(b))}L${fix(px(c))} ${fix(py(d))}`).join("");
        const style = { stroke: layer.colour, "stroke-width": `${layer.width ?? 2}`, "stroke-dasharray": layer.dash ?? "none" };
        return [svg("path", { d: path, class: "line" }, style)];
      }
    }
  }

  /** A pointer over the chart reads the named lines. @param {SVGElement} root @param {Line[]} lines
   * @param {Drawing} drawing @param {{left: number, right: number, top: number, bottom: number}} box
   * @param {(x: number) => number} px */
  readOnHover(root, lines, drawing, box, px) {
    const guide = svg("line", { y1: box.top, y2: box.bottom, class: "guide" });
    const words = this.text(box.right, 12, "", "end", "readout");
    guide.style.display = "none";
    root.append(guide, words);
    root.addEventListener("pointermove", (event) => {
      const at = ((/** @type {PointerEvent} */ (event).offsetX - box.left) / (box.right - box.left)) * (drawing.x[1] - drawing.x[0]);
      const x = clip(drawing.x[0] + at, drawing.x[0], drawing.x[1]);
      guide.setAttribute("x1", String(px(x)));
      guide.setAttribute("x2", String(px(x)));
      guide.style.display = "";
      words.textContent = `at ${drawing.xDates ? dateText(x) : say(x)}: ${lines.map((line) => `${line.name} ${say(interpolate(x, line.xs, line.ys))}`).join(", ")}`;
    });
    root.addEventListener("pointerleave", () => {
      guide.style.display = "none";
      words.textContent = "";
    });
  }
}
Chart.count = 0;

/** Where a share falls by chance, around the promised one. @param {any} chance @returns {Layer} */
function chanceBand(chance) {
  const [xs, low, high] = [chance.share, chance.low, chance.high].map(unpack);
  return { type: "band", xs, low, high, colour: "var(--soft)", opacity: 0.18 };
}

/** What the band means, for a legend. @param {any} chance @returns {[string, string]} */
function chanceKey(chance) {
  return ["band", `where ${percent(chance.confidence)} of shares of ${plain.format(chance.rows)} rows fall by chance`];
}

/** A range with a margin. @param {number} low @param {number} high @param {number} [margin] @returns {[number, number]} */
function widened(low, high, margin = 0.04) {
  const width = high - low || Math.abs(high) || 1;
  return [low - margin * width, high + margin * width];
}

/**
 * Where a function on a grid is 0, by marching squares: pieces [x, y, x', y'].
 * @param {Numbers} xs @param {Numbers} ys @param {Numbers} values Row after row, y by y.
 */
function contour(xs, ys, values) {
  /** @type {number[][]} */
  const pieces = [];
  const n = xs.length;
  for (let j = 0; j + 1 < ys.length; j++) {
    for (let i = 0; i + 1 < n; i++) {
      const corners = [
        [xs[i], ys[j], values[j * n + i]],
        [xs[i + 1], ys[j], values[j * n + i + 1]],
        [xs[i + 1], ys[j + 1], values[(j + 1) * n + i + 1]],
        [xs[i], ys[j + 1], values[(j + 1) * n + i]],
      ];
      /** @type {number[][]} */
      const cuts = [];
      for (let k = 0; k < 4; k++) {
        const [a, b] = [corners[k], corners[(k + 1) % 4]];
        if (a[2] >= 0 !== b[2] >= 0) {
          const share = a[2] / (a[2] - b[2]);
          cuts.push([a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])]);
        }
      }
      for (let k = 0; k + 1 < cuts.length; k += 2) pieces.push([...cuts[k], ...cuts[k + 1]]);
    }
  }
  return pieces;
}

/** A picture of shares in [0, 1] on a grid, n wide. @param {Numbers} shares @param {number} n */
function heat(shares, n) {
  const canvas = document.createElement("canvas");
  const rows = shares.length / n;
  canvas.width = n;
  canvas.height = rows;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(n, rows);
  for (let j = 0; j < rows; j++) {
    for (let i = 0; i < n; i++) {
      image.data.set([...thetaRGB(shares[j * n + i]), 255], 4 * ((rows - 1 - j) * n + i));
    }
  }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}
