/** Controls, words and cards that all three pages share. Text from the data is only ever set as text. */

/** @typedef {{X: Float64Array, left: Float64Array, number: Float64Array, weight: Float64Array, count: number, s: number,
 *   y?: Float64Array, case?: Float64Array, p?: Float64Array, label: string[] | null}} Rows
 *   `label`: what the table calls its rows; null: they are numbered from 0. */

/**
 * An element with attributes and children; strings become text.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Record<string, any>} [attributes] @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

/** A card with a heading. @param {string} title @param {string} words @param {string} [kind] */
function card(title, words, kind = "") {
  const id = `card-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  const node = el("section", { class: `card ${kind}`, "aria-labelledby": id }, el("h2", { id }, title));
  if (words) node.append(el("p", { class: "words" }, words));
  return node;
}

/** A list of numbers with names; every number keeps its full value for programs. @param {[string, string][]} entries */
function statList(entries) {
  const list = el("dl", { class: "stats" });
  /** @type {Record<string, HTMLOutputElement>} */
  const outputs = {};
  for (const [id, label] of entries) {
    outputs[id] = el("output", { id: `out-${id}` });
    list.append(el("div", {}, el("dt", {}, label), el("dd", {}, outputs[id])));
  }
  return {
    node: list,
    /** @param {string} id @param {number | number[]} value @param {string} words */
    set(id, value, words) {
      outputs[id].textContent = words;
      outputs[id].dataset.value = JSON.stringify(value);
    },
  };
}

/** Where a sentence appears when an entry cannot be. @param {string} id */
function alertLine(id) {
  return el("p", { class: "note warning", id, "aria-live": "polite" });
}

/** @param {string} id @param {string} label @param {[string, string][]} choices @param {string} value
 * @param {(value: string) => void} changed */
function choice(id, label, choices, value, changed) {
  const select = el("select", { id });
  for (const [key, words] of choices) select.append(el("option", { value: key, selected: key === value }, words));
  select.addEventListener("change", () => changed(select.value));
  return el("div", { class: "choice" }, el("label", { for: id }, label), select);
}

/** Marks and what they mean. @param {...[string, string]} entries */
function legend(...entries) {
  return el("p", { class: "legend" }, ...entries.map(([kind, words]) => el("span", {}, el("span", { class: `key ${kind}` }), words)));
}

/** What the three pages share: the rows, the input that is looked at, and what is drawn when something changes. */
class Explorer {
  /** @param {any} payload @param {Quantiles | Decisions | LevelSets} model */
  constructor(payload, model) {
    this.payload = payload;
    this.target = /** @type {string} */ (payload.target);
    this.columns = /** @type {any[]} */ (payload.columns).map(columnOf);
    this.encoder = new Encoder(this.columns, payload.base);
    this.d = this.columns.length;
    this.anyModel = model;
    const rows = payload.rows;
    this.rows = /** @type {Rows} */ ({ count: rows.X.shape[0], s: rows.left.shape[1], label: rows.label });
    for (const name of ["X", "left", "number", "weight", "y", "case", "p"]) {
      if (rows[name]) /** @type {any} */ (this.rows)[name] = unpack(rows[name]);
    }
    this.x = Float64Array.from(this.columns, (column) => column.typical);
    this.left = this.leftOf(this.x);
    /** @type {(() => void)[]} */
    this.drawn = [];
    this.pending = false;
    /** @type {{set: (value: number) => void}[]} */
    this.inputs = [];
    const relevance = /** @type {number[] | null} */ (payload.relevance);
    this.relevance = relevance;
    this.order = this.columns.map((_, j) => j);
    if (relevance) this.order.sort((a, b) => relevance[b] - relevance[a]);
    this.numbers = this.order.filter((j) => this.columns[j].kind === "number");
    this.lists = this.order.filter((j) => this.columns[j].kind === "choice");
    this.rowLine = el("p", { class: "note", id: "row-line", role: "status" });
    this.rangeLine = el("p", { class: "note warning", id: "range-line", role: "status" });
    this.main = el("div", { class: "cards" });
    this.aside = el("div", { class: "aside" });
  }

  /** left(x) of a row. @param {number} i */
  leftOfRow(i) {
    return rowOf(this.rows.left, i, this.rows.s);
  }

  /** left(x) of what is entered. @param {Numbers} x */
  leftOf(x) {
    return this.anyModel.left(this.encoder.encode(x));
  }

  /** Values of one input from end to end; of a list, those that are drawn. @param {number} j @param {number} count */
  walk(j, count) {
    const column = this.columns[j];
    if (column.kind === "choice") return Float64Array.from(categories(column, this.x[j]));
    const here = Number.isNaN(this.x[j]) ? column.typical : this.x[j];
    const values = evenly(Math.min(column.low, here), Math.max(column.high, here), count);
    return column.date ? values.map(Math.round).filter((value, k, all) => value !== all[k - 1]) : values;
  }

  /** What one input changes, the others as they are. @template T @param {number} j @param {Numbers} values
   * @param {(left: Float64Array, encoded: Numbers) => T} answer @returns {T[]} */
  answersAlong(j, values, answer) {
    const x = Float64Array.from(this.x);
    return Array.from(values, (value) => {
      x[j] = value;
      const encoded = this.encoder.encode(x);
      return answer(this.anyModel.left(encoded), encoded);
    });
  }

  /** Draw all again, once in a frame. */
  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      for (const draw of this.drawn) draw();
    });
  }

  /** Look at another input. @param {Numbers} x */
  look(x) {
    this.x.set(x);
    this.left = this.leftOf(this.x);
    this.inputs.forEach((input, j) => input.set(this.x[j]));
    this.sayRange();
    this.redraw();
  }

  sayRange() {
    const beyond = this.columns.filter((c, j) => c.kind === "number" && (this.x[j] < c.low || this.x[j] > c.high)).map((c) => c.name);
    this.rangeLine.textContent = beyond.length
      ? `Beyond the rows: ${beyond.join(", ")}. The model has seen nothing like it; do not trust its answer here.`
      : "";
  }

  /** The panel in which an input is typed or picked. */
  inputPanel() {
    const panel = el("section", { class: "card inputs", "aria-labelledby": "inputs-head" }, el("h2", { id: "inputs-head" }, "The input"));
    const { rows } = this;
    const alert = alertLine("row-alert");
    const kind = rows.label ? { type: "text", autocomplete: "off" } : { type: "number", min: 0, step: 1, max: rows.number[rows.count - 1] };
    const box = el("input", { ...kind, id: "row", placeholder: "row", "aria-describedby": alert.id });
    /** @param {string} words */
    const complain = (words) => {
      alert.textContent = words;
      box.setAttribute("aria-invalid", String(words !== ""));
    };
    box.addEventListener("change", () => {
      const wanted = box.value.trim();
      complain("");
      if (wanted === "") return;
      const named = this.rowsCalled(wanted);
      if (named.length) {
        this.lookAtRow(named[0], named.length > 1 ? `, the first of ${named.length} with this name` : "");
        return;
      }
      const number = Number(wanted);
      if (!Number.isInteger(number) || number < 0) {
        complain(rows.label ? `No row on this page is called “${shortened(wanted, 40)}”.` : "A row has a whole number, from 0 on.");
        return;
      }
      const right = clip(search(rows.number, number, "left"), 0, rows.count - 1);
      const nearer = right > 0 && number - rows.number[right - 1] < rows.number[right] - number ? right - 1 : right;
      const exact = rows.number[nearer] === number;
      if (rows.label && !exact) complain(`No row on this page is called “${wanted}”, and none is at that place of the table.`);
      else this.lookAtRow(nearer, rows.label ? `, at place ${number} of the table` : exact ? "" : ", the nearest on this page");
    });
    const typical = () => {
      this.rowLine.textContent = "A typical value of every input.";
      this.look(this.columns.map((column) => column.typical));
    };
    const random = () => {
      const i = Math.floor(Math.random() * rows.count);
      box.value = this.rowName(i);
      complain("");
      this.lookAtRow(i);
    };
    panel.append(
      el(
        "div",
        { class: "pick" },
        el("label", { for: "row" }, rows.label ? "Pick a row (its name, or its place from 0)" : "Pick a row (from 0)"),
        box,
        el("button", { type: "button", id: "random-row", onclick: random }, "Any row"),
        el("button", { type: "button", id: "typical-row", onclick: typical }, "Typical"),
      ),
      alert,
      this.rowLine,
    );
    panel.append(this.rangeLine);
    // on a phone the answer must not be far below; those that matter most come first where not all are shown
    const most = innerWidth < 700 ? 3 : 8;
    const all = this.d <= most;
    const rest = el("details", {}, el("summary", {}, `${this.d - most} more ${this.d - most === 1 ? "input" : "inputs"}`));
    this.inputs = new Array(this.d);
    (all ? this.columns.map((_, j) => j) : this.order).forEach((j, place) => {
      const column = this.columns[j];
      const control = fieldControl(`input-${j}`, column, this.x[j], (value) => {
        this.x[j] = value;
        this.left = this.leftOf(this.x);
        this.rowLine.textContent = "";
        this.sayRange();
        this.redraw();
      });
      this.inputs[j] = control;
      (place < most ? panel : rest).append(control.node);
    });
    if (!all) panel.append(rest);
    this.rowLine.textContent = "A typical value of every input.";
    return panel;
  }

  /** What a row is called: as the table calls it, or by its place. @param {number} i */
  rowName(i) {
    return this.rows.label?.[i] ?? String(this.rows.number[i]);
  }

  /** Rows on the page that the table calls so. @param {string} name @returns {number[]} */
  rowsCalled(name) {
    return (this.rows.label ?? []).flatMap((label, i) => (label.trim() === name ? [i] : []));
  }

  /** @param {number} i @param {string} [which] Words on how it was found. */
  lookAtRow(i, which = "") {
    const { rows, d } = this;
    const truth = rows.y ? ` Its ${this.target} was ${say(rows.y[i])}.` : rows.case ? ` It was ${rows.case[i] ? "a" : "no"} case.` : "";
    this.rowLine.textContent = `Row ${shortened(this.rowName(i), 60)}${which}.${truth}`;
    this.look(rowOf(rows.X, i, d));
  }

  /** Which inputs matter, as bars. @param {string} words */
  relevanceCard(words) {
    const { relevance } = this;
    if (!relevance || this.d < 2) return null;
    const together = this.encoder.base ? " What one input is encoded as counts together, as the root of the sum of squares." : "";
    const node = card("Which inputs matter", words + together);
    const most = Math.max(...relevance) || 1;
    const table = el("table", { class: "bars" }, el("caption", { class: "hidden" }, "Inputs, those that matter most first"));
    table.append(el("thead", { class: "hidden" }, el("tr", {}, el("th", { scope: "col" }, "Input"), el("th", { scope: "col" }, "Effect"))));
    const body = el("tbody");
    for (const j of this.order.slice(0, 12)) {
      const bar = el("span", { class: "bar" });
      bar.style.width = `${(100 * relevance[j]) / most}%`;
      const track = el("span", { class: "track", "aria-hidden": "true" }, bar);
      body.append(
        el("tr", {}, el("th", { scope: "row" }, this.columns[j].name), el("td", {}, track, el("span", { class: "bar-number" }, say(relevance[j])))),
      );
    }
    table.append(body);
    node.append(table);
    return node;
  }

  /** Names of inputs for a choice. @param {number[]} [among] @returns {[string, string][]} */
  choices(among = this.order) {
    return among.map((j) => [String(j), this.columns[j].name]);
  }

  /** A sentence on which rows are looked at. */
  rowsSentence() {
    const { total, looked_at: looked } = this.payload;
    const shown = this.rows.count;
    const all = plain.format(total);
    if (shown === total) return `${all} rows are on this page.`;
    const seen = looked < total ? `, chosen from ${plain.format(looked)} evenly spaced ones` : "";
    return `${plain.format(shown)} of ${all} rows are on this page${seen}; the model is there as a whole.`;
  }
}
