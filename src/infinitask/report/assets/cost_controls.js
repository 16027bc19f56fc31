/** What a person asks on the page of decisions: two costs, or a bound on one of the errors. */

/** Trade-offs nearer than this are the same to a person. */
const SAME_TRADE_OFF = 5e-4;

/** What two costs mean, in words. @param {{missed: number, alarm: number}} costs */
function costsInWords({ missed, alarm }) {
  if (alarm === 0) return "only missed cases count";
  if (missed === 0) return "only false alarms count";
  if (missed === alarm) return "both errors count the same";
  return missed > alarm
    ? `a missed case counts ${say(missed / alarm)} times as much as a false alarm`
    : `a false alarm counts ${say(alarm / missed)} times as much as a missed case`;
}

/** The two costs and what they mean; and a line for beside the slider, on whether the trade-off is theirs. @param {CostPage} page */
function costControls(page) {
  /** @param {string} id @param {number} value */
  const boxOf = (id, value) => el("input", { type: "number", id, min: 0, step: "any", value, inputmode: "decimal", "aria-describedby": "costs-alert" });
  const boxes = { missed: boxOf("missed-cost", page.costs.missed), alarm: boxOf("alarm-cost", page.costs.alarm) };
  const alert = alertLine("costs-alert");
  const take = () => {
    const { missed, alarm } = boxes;
    const bad = [missed, alarm].filter((box) => !(box.value.trim() !== "" && Number(box.value) >= 0 && Number.isFinite(Number(box.value))));
    const nothing = !bad.length && Number(missed.value) + Number(alarm.value) === 0;
    for (const box of [missed, alarm]) box.setAttribute("aria-invalid", String(nothing || bad.includes(box)));
    const kept = `The costs are still ${say(page.costs.missed)} and ${say(page.costs.alarm)}.`;
    alert.textContent = bad.length ? `A cost is a number, 0 or more. ${kept}` : nothing ? `One of the two costs must be above 0. ${kept}` : "";
    if (alert.textContent) return;
    page.costs = { missed: Number(missed.value), alarm: Number(alarm.value) };
    page.move(page.thetaOfCosts());
  };
  /** @param {HTMLInputElement} box @param {string} label */
  const pair = (box, label) => {
    box.addEventListener("input", take);
    return el("span", { class: "pair" }, el("label", { for: box.id }, label), box);
  };
  const line = el("p", { class: "sentence", id: "sentence", "aria-live": "polite" });
  const other = el("span", { id: "costs-theta" });
  const back = el("button", { type: "button", id: "to-costs", onclick: () => page.move(page.thetaOfCosts()) }, "Go there");
  const elsewhere = el("p", { class: "note beside", "aria-live": "polite" }, other, " ", back);
  page.drawn.push(() => {
    const { missed, alarm } = page.costs;
    const counts = page.counts ? page.at(page.theta) : null;
    const found = counts ? ` Of ${say(counts.positives)} cases ${say(Math.round(counts.positives - counts.missed))} are found, with ${say(Math.round(counts.alarms))} false alarms.` : "";
    line.textContent = `With your costs ${costsInWords(page.costs)}.${found}`;
    line.dataset.value = JSON.stringify(alarm === 0 ? null : missed / alarm);
    const asked = page.thetaOfCosts();
    elsewhere.hidden = Math.abs(asked - page.theta) < SAME_TRADE_OFF;
    other.textContent = elsewhere.hidden ? "" : `These costs would ask for θ = ${say(asked)}.`;
    other.dataset.value = JSON.stringify(asked);
  });
  const pairs = el("div", { class: "pairs" }, pair(boxes.missed, "A missed case costs"), pair(boxes.alarm, "a false alarm"));
  return { node: el("div", { class: "control" }, pairs, alert, line), elsewhere };
}

/** The trade-off that meets a bound on one of the errors. @param {CostPage} page */
function wishControls(page) {
  const answer = el("p", { class: "note", id: "wish-line", role: "status" });
  const alert = alertLine("wish-alert");
  /** @param {string} id @param {string} label @param {number} value @param {string} unit @param {string} button @param {boolean} isRate */
  const wish = (id, label, value, unit, button, isRate) => {
    const box = el("input", { type: "number", id, min: 0, max: 100, step: "any", value, inputmode: "decimal", "aria-describedby": alert.id });
    const known = () => {
      const found = box.value.trim() !== "" && Number(box.value) >= 0 && Number(box.value) <= 100;
      box.setAttribute("aria-invalid", String(!found));
      alert.textContent = found ? "" : "A share is a number from 0 to 100%. Nothing was changed.";
      return found;
    };
    box.addEventListener("input", known);
    const set = () => {
      if (!known()) return;
      const theta = page.bounded(Number(box.value) / 100, isRate);
      answer.dataset.value = JSON.stringify(theta);
      if (theta === null) {
        answer.textContent = isRate ? "No trade-off has so few false alarms on these rows." : "No trade-off finds so many cases on these rows.";
        return;
      }
      page.move(theta);
      const { missed, alarms, positives, negatives } = page.at(theta);
      answer.textContent = `Trade-off ${say(theta)}: ${percent(1 - missed / positives)} of the cases are found, ${percent(alarms / negatives)} of the others raise an alarm.`;
    };
    return el("span", { class: "pair" }, el("label", { for: id }, label), box, el("span", {}, unit), el("button", { type: "button", id: button, onclick: set }, "Set"));
  };
  const pairs = el(
    "div",
    { class: "pairs" },
    wish("required-sensitivity", "Find at least", 95, "% of cases", "find-sensitivity", false),
    wish("allowed-alarms", "or false alarms for at most", 10, "%", "find-alarms", true),
  );
  const promise = el("p", { class: "note" }, "On these rows; for a guarantee use ", el("code", {}, "choose_theta(max_fpr=…, confidence=…)"), " in Python.");
  return el("div", { class: "control" }, pairs, alert, answer, promise);
}

/** Where a curve is least; of equal places the one nearest to θ. @param {Numbers} values @param {Numbers} levels @param {number} theta */
function leastNear(values, levels, theta) {
  let best = 0;
  for (let j = 1; j < values.length; j++) {
    const nearer = Math.abs(levels[j] - theta) < Math.abs(levels[best] - theta);
    if (values[j] < values[best] || (values[j] === values[best] && nearer)) best = j;
  }
  return best;
}
