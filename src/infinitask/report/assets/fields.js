/** Fields: columns of the table as a person knows them, how they are entered, and what the model is given for them. */

/** @typedef {{name: string, kind: "number" | "choice", low: number, high: number, typical: number, whole: boolean, date: boolean,
 *   choices: string[], counts: number[], listed: number, missing: number, distinct: number, mayMiss: boolean, encoded: any}} Column
 *   A choice is a place in the list `choices`, of which the first `listed` can be chosen; `missing` is the place of the missing
 *   value. A number that is missing is NaN. */

const DAY = 86_400_000;

/** Categories that are drawn at once. */
const MOST_CATEGORIES = 16;

/** A column as it is written, with what its kind does not have. @param {any} written @returns {Column} */
function columnOf(written) {
  const choices = written.choices ?? [];
  const none = { low: 0, high: Math.max(0, choices.length - 1), whole: true, date: false, counts: [], listed: 0, missing: -1, distinct: 0 };
  return { ...none, ...written, choices, mayMiss: written.kind === "number" && Boolean(written.encoded?.missing) };
}

/** From what is entered to the input of the model: every column decides some of its numbers. */
class Encoder {
  /** @param {Column[]} columns @param {any} base The input of typical values; null: what is entered is the input. */
  constructor(columns, base) {
    this.base = base ? unpack(base) : null;
    this.parts = columns.map((column) => {
      const written = column.encoded;
      if (!written) return null;
      /** @param {string} name */
      const array = (name) => (written[name] ? unpack(written[name]) : new Float64Array(0));
      return {
        ...{ type: written.type, columns: /** @type {number[]} */ (written.columns), single: Boolean(written.single) },
        ...{ origin: written.type === "table" ? column.low : Number(written.origin ?? 0), last: column.high - column.low },
        ...{ offset: array("offset"), slope: array("slope"), values: array("values"), missing: array("missing") },
      };
    });
  }

  /** @param {Numbers} x @returns {Numbers} */
  encode(x) {
    if (!this.base) return x;
    const found = Float64Array.from(this.base);
    this.parts.forEach((part, j) => {
      if (!part) return;
      const value = x[j];
      const width = part.columns.length;
      const from = part.type === "choices" ? value : clip(Math.round(value - part.origin), 0, part.last);
      const away = (part.single ? Math.fround(value) : value) - part.origin;
      part.columns.forEach((c, k) => {
        if (Number.isNaN(value)) found[c] = part.missing[k];
        else found[c] = part.type === "affine" ? part.offset[k] + away * part.slope[k] : part.values[from * width + k];
      });
    });
    return found;
  }
}

/** @param {number} day Since 1970. */
function dateText(day) {
  return new Date(Math.round(day) * DAY).toISOString().slice(0, 10);
}

/** What a value is called. @param {Column} column @param {number} value */
function sayValue(column, value) {
  if (column.kind === "choice") return value === column.missing ? "missing" : column.choices[value] || "(empty)";
  if (Number.isNaN(value)) return "missing";
  return column.date ? dateText(value) : say(value);
}

/** Places for ticks among days: years, months or days. @param {number} low @param {number} high @param {number} count */
function dateTicks(low, high, count) {
  const [first, last] = [new Date(low * DAY), new Date(high * DAY)];
  const months = 12 * (last.getUTCFullYear() - first.getUTCFullYear()) + last.getUTCMonth() - first.getUTCMonth();
  if (months < count) return niceTicks(low, high, count).map(Math.round).filter((tick, k, all) => tick !== all[k - 1] && tick >= low && tick <= high);
  const step = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600].find((s) => months / s <= count) ?? 1200;
  const ticks = [];
  const start = Math.ceil((12 * first.getUTCFullYear() + first.getUTCMonth()) / step) * step;
  for (let month = start; ; month += step) {
    const tick = Date.UTC(Math.floor(month / 12), month % 12) / DAY;
    if (tick > high) return ticks;
    if (tick >= low) ticks.push(tick);
  }
}

/** A day beside an axis. @param {number} day @param {number[]} ticks */
function dateTickText(day, ticks) {
  const texts = ticks.map(dateText);
  const text = dateText(day);
  if (texts.every((t) => t.endsWith("-01-01"))) return text.slice(0, 4);
  return texts.every((t) => t.endsWith("-01")) ? text.slice(0, 7) : text;
}

/** Choices that are drawn: the most frequent and the one that is looked at, in the order of the list.
 * @param {Column} column @param {number} here @param {number} [most] */
function categories(column, here, most = MOST_CATEGORIES) {
  const all = column.choices.map((_, k) => k).slice(0, column.listed);
  const kept = all.sort((a, b) => column.counts[b] - column.counts[a]).slice(0, most);
  if (!kept.includes(here)) kept.splice(Math.min(kept.length, most - 1), 1, here);
  return kept.sort((a, b) => a - b);
}

/**
 * A slider and a box for one number.
 * @param {{id: string, label: string, low: number, high: number, step: number | "any", value: number, unit?: string,
 *   ends?: [string, string], theta?: boolean, free?: boolean, scale?: number, date?: boolean, missing?: boolean}} options `free`: the box takes numbers beyond
 *   the slider; `scale`: shown numbers are this many times the value, such as 100 for percents; `date`: numbers
 *   are days since 1970; `missing`: there may be no value, which is NaN.
 * @param {(value: number) => void} changed
 */
function numberControl(options, changed) {
  const { id, label, step } = options;
  const scale = options.scale ?? 1;
  const [low, high] = [options.low * scale, options.high * scale];
  /** @param {number} value */
  const rounded = (value) => String(options.date ? Math.round(value) : +(value * scale).toPrecision(5));
  /** @param {number} value */
  const shown = (value) => (options.date ? dateText(value) : rounded(value));
  const slider = el("input", { type: "range", id: `${id}-slider`, min: low, max: high, step, value: rounded(options.value) });
  slider.setAttribute("aria-label", `${label}, slider`);
  if (options.theta) slider.classList.add("theta");
  const box = options.date
    ? el("input", { type: "date", id, value: shown(options.value), min: shown(low), max: shown(high) })
    : el("input", { type: "number", id, step: "any", value: shown(options.value), inputmode: "decimal" });
  if (!options.free && !options.date) {
    box.min = String(low);
    box.max = String(high);
  }
  const name = el("label", { for: id }, label);
  const head = el("div", { class: "control-head" }, name, el("span", { class: "box" }, box, options.unit ? el("span", {}, options.unit) : ""));
  const alert = alertLine(`${id}-alert`);
  box.setAttribute("aria-describedby", alert.id);
  const node = el("div", { class: "control" }, head, alert, slider);
  if (options.ends) node.append(el("div", { class: "ends" }, el("span", {}, options.ends[0]), el("span", {}, options.ends[1])));
  let last = options.value;
  /** @param {string} words What is wrong with the entry; nothing else changes. */
  const complain = (words) => {
    alert.textContent = words;
    box.setAttribute("aria-invalid", String(words !== ""));
  };
  /** @param {string} text @param {HTMLInputElement} other */
  const take = (text, other) => {
    const fromDate = options.date && other === slider;
    const value = text.trim() === "" ? NaN : fromDate ? Date.parse(text) / DAY : Number(text);
    const known = Number.isFinite(value) && (options.free || (value >= low && value <= high));
    const unit = options.unit ?? "";
    const rule = options.free ? "A number is needed" : `It must be between ${shown(options.low)} and ${shown(options.high)}${unit}`;
    complain(known ? "" : `${rule}; it is still ${shown(last)}${unit}.`);
    if (!known) return;
    other.value = other === box ? shownNumber(value) : String(value);
    last = value / scale;
    changed(last);
  };
  /** A number of the slider, which is not rounded. @param {number} value */
  const shownNumber = (value) => (options.date ? dateText(value) : String(value));
  const nothing = el("input", { type: "checkbox", id: `${id}-missing` });
  /** @param {boolean} none */
  const showMissing = (none) => {
    nothing.checked = none;
    slider.disabled = none;
    box.disabled = none;
  };
  if (options.missing) {
    node.append(el("label", { class: "check", for: nothing.id }, nothing, el("span", {}, "missing", el("span", { class: "hidden" }, ` ${label}`))));
    nothing.addEventListener("change", () => {
      showMissing(nothing.checked);
      changed(nothing.checked ? NaN : last);
    });
  }
  slider.addEventListener("input", () => take(slider.value, box));
  box.addEventListener("input", () => take(box.value, slider));
  return {
    node,
    /** @param {number} value */
    set(value) {
      if (options.missing) showMissing(Number.isNaN(value));
      if (Number.isNaN(value)) return;
      last = value;
      slider.value = rounded(value);
      // who is typing must not be interrupted
      if (document.activeElement === box) return;
      box.value = shown(value);
      complain("");
    },
  };
}

/**
 * A list for one choice.
 * @param {string} id @param {Column} column @param {number} value @param {(value: number) => void} changed
 */
function choiceControl(id, column, value, changed) {
  const select = el("select", { id });
  for (let k = 0; k < column.listed; k++) select.append(el("option", { value: k }, sayValue(column, k)));
  select.value = String(value);
  select.addEventListener("change", () => changed(Number(select.value)));
  const node = el("div", { class: "control" }, el("div", { class: "control-head" }, el("label", { for: id }, column.name)), select);
  if (column.distinct > column.listed) {
    node.append(el("p", { class: "note" }, `${plain.format(column.listed)} of ${plain.format(column.distinct)} values can be chosen here.`));
  }
  return {
    node,
    /** @param {number} now */
    set(now) {
      // a row may have a value that is not in the list
      if (!select.querySelector(`option[value="${now}"]`)) select.append(el("option", { value: now }, sayValue(column, now)));
      select.value = String(now);
    },
  };
}

/** The control of one column. @param {string} id @param {Column} column @param {number} value @param {(value: number) => void} changed */
function fieldControl(id, column, value, changed) {
  if (column.kind === "choice") return choiceControl(id, column, value, changed);
  const high = column.high > column.low ? column.high : column.low + 1;
  const { low, whole, date, mayMiss: missing } = column;
  return numberControl({ id, label: column.name, low, high, step: whole ? 1 : "any", value, free: !date, date, missing }, changed);
}
