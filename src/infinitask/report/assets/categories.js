/** Charts of lists: one line for each category, the answer across. */

/** The smallest answer that an axis ends at; a line up to so many times the largest answer away is drawn; the axis goes on
 * by this factor, since numbers stand right of the bars. */
const [LEAST_AXIS, REACH, ROOM_FOR_WORDS] = [1e-3, 2.5, 1.2];

/** Height of a chart with so many lines. @param {number} count @param {number} [each] */
function heightOf(count, each = 26) {
  return 66 + each * count;
}

/** A bar across, in the line k. @param {number} k @param {number} from @param {number} to @param {string} colour
 * @param {number} opacity @param {number} [half] @returns {Layer} */
function barAcross(k, from, to, colour, opacity, half = 0.3) {
  return { type: "band", xs: [from, to], low: [k + half, k + half], high: [k - half, k - half], colour, opacity };
}

/** Where a row is drawn beside others of its category: always at the same place. @param {number} k @param {number} i */
function beside(k, i) {
  return k + 0.5 * (((i * 0.6180339887498949) % 1) - 0.5);
}

/** Which categories are drawn, where not all are. @param {Column} column @param {number} shown */
function saysCategories(column, shown) {
  const all = Math.max(column.distinct, column.listed);
  return shown < all ? `${shown} of ${plain.format(all)} values of ${column.name} are drawn, the most frequent and the one at the input.` : "";
}

/**
 * One answer for each category of a list, the other inputs as they are; null where no input is a list.
 * @param {Explorer} explorer
 * @param {{title: string, words: string, answer: string, value: (left: Float64Array, encoded: Numbers) => number,
 *   limit: () => number, text: (value: number) => string, says: (words: string) => string}} options
 */
function categoryCard(explorer, options) {
  const { lists } = explorer;
  if (!lists.length) return null;
  const node = card(options.title, options.words, "wide");
  let by = lists[0];
  if (lists.length > 1) {
    node.append(
      choice("by", "Along", explorer.choices(lists), String(by), (value) => {
        by = Number(value);
        explorer.redraw();
      }),
    );
  }
  const holder = el("div");
  const note = el("p", { class: "note" });
  node.append(holder, note);
  const chart = new Chart(holder);
  explorer.drawn.push(() => {
    const column = explorer.columns[by];
    const codes = explorer.walk(by, 0);
    const values = explorer.answersAlong(by, codes, options.value);
    const names = Array.from(codes, (code) => sayValue(column, code));
    const here = codes.indexOf(explorer.x[by]);
    /** @type {Layer[]} */
    const layers = values.map((value, k) => barAcross(k, 0, value, k === here ? "var(--accent)" : "var(--quiet)", k === here ? 0.85 : 0.5));
    // the axis ends a little beyond the largest answer, and the line is drawn where it is not far beyond
    const most = Math.max(...values, LEAST_AXIS);
    const limit = options.limit();
    const near = limit <= REACH * most;
    const end = ROOM_FOR_WORDS * (near ? Math.max(most, limit) : most);
    const beyond = near ? "" : `The line is at ${percent(limit)}, right of this picture.`;
    note.textContent = [saysCategories(column, codes.length), beyond].filter(Boolean).join(" ");
    layers.push(
      { type: "rule", x: limit, colour: "var(--ink)", width: 2 },
      { type: "words", xs: values, ys: values.map((_, k) => k), texts: values.map(options.text) },
    );
    chart.draw({
      x: [0, end],
      y: [codes.length - 0.5, -0.5],
      xTicks: niceTicks(0, Math.min(1, end), 5),
      yNames: names,
      xLabel: options.answer,
      yLabel: column.name,
      layers,
      height: heightOf(codes.length),
      says: options.says(`${column.name}: ${names.map((name, k) => `${name} ${options.text(values[k])}`).join(", ")}`),
    });
  });
  return node;
}
