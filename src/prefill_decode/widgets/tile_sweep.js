// Steps through a finished picture. Python drew it and computed every number and sentence: this module changes
// attributes and texts of the elements that are there.


/** What a tile is at a step that is visited or passed at another one. */
export function stateOf(at, step, skipped) {
  if (at > step) return "future";
  if (skipped) return "skipped";
  return at === step ? "now" : "done";
}

/** Whether every key of a tile comes later than every query of another. */
export function isSkipped(row, column, { queries, keys }, n) {
  return column * keys >= Math.min((row + 1) * queries, n);
}

/** Which sides of a cell are sides of its tile. */
export function edgesOf(i, j, { queries, keys }, n) {
  const sides = [
    ["top", i % queries === 0],
    ["bottom", i % queries === queries - 1 || i === n - 1],
    ["left", j % keys === 0],
    ["right", j % keys === keys - 1 || j === n - 1],
  ];
  return sides.filter(([, is]) => is).map(([name]) => name).join(" ");
}

/** What stands beside a row at a step: its texts, and whether this step changed it. */
export function rowAt(i, step, memory, told, d) {
  const row = Math.floor(i / memory.queries);
  const reach = told.at[row].filter((at, column) => at <= step && column * memory.keys <= i).length;
  if (reach === 0) return { state: "future", texts: Array(d + 4).fill("") };
  const [maximum, total, output, factor] = memory.known[i][reach - 1];
  const [inTile, reads] = [told.tiles[step][0] === row, told.tiles[step][1] * memory.keys <= i];
  const shown = !inTile ? "" : reads ? factor || "–" : "1.00";
  const final = reach === memory.known[i].length ? "✓" : "";
  return { state: inTile && reads ? "now" : "done", texts: [maximum, total, shown, ...output, final] };
}

class SweepView extends SteppedView {
  constructor(root, model) {
    super(root, model);
    this.collect();
    this.choose(model.get("memory"), model.get("order"), model.get("step"));
    this.listen();
  }

  get steps() {
    return this.told.steps;
  }

  /** Look every element up once. */
  collect() {
    const one = (selector) => this.root.querySelector(selector);
    const rows = (selector) => [...this.root.querySelectorAll(`${selector} tbody tr`)];
    this.cells = rows(".pd-grid").map((row) => [...row.querySelectorAll("td")]);
    this.rows = rows(".pd-rows").map((row) => [row, [...row.querySelectorAll("td")]]);
    this.texts = {};
    for (const element of this.root.querySelectorAll("[data-text]")) this.texts[element.dataset.text] = element;
    this.parts = ["reads", "writes", "end"].map((name) => one(`[data-part=${name}]`));
    this.sentence = one(".pd-sentence");
    this.selects = ["memory", "order"].map((name) => one(`select[name=${name}]`));
  }

  listen() {
    this.on(this.root, "click", ({ target }) => {
      const button = target.closest("button");
      if (button?.dataset.act) this.act(button.dataset.act);
      if (button?.dataset.ask) this.ask(this.data.questions[button.dataset.ask], button);
    });
    this.on(this.root, "input", ({ target }) => {
      if (target === this.range) this.userStep(Number(target.value));
      else this.user(() => this.choose(Number(this.selects[0].value), this.selects[1].value));
    });
    this.listenToSteps(["memory", "order", "step"]);
  }

  fromModel() {
    this.choose(this.model.get("memory"), this.model.get("order"), this.model.get("step"));
  }

  /** Cut the grid into the tiles of a choice; one that does not exist changes nothing. Without a step, show its end. */
  choose(size, order, step = Infinity) {
    const memory = this.data.memories.find((each) => each.m === size);
    const told = memory?.orders[order];
    if (!told) return;
    [this.memory, this.told] = [memory, told];
    const { n, longest } = this.data;
    this.cells.forEach((row, i) => row.forEach((cell, j) => put(cell, "data-edges", edgesOf(i, j, memory, n))));
    write(this.texts.end, told.end);
    write(this.texts.ends, this.data.ends[order]);
    this.parts[2].style.left = `${(100 * told.total / longest).toFixed(2)}%`;
    this.range.max = told.steps;
    [this.selects[0].value, this.selects[1].value] = [size, order];
    Object.assign(this.root.dataset, { memory: size, order, steps: told.steps });
    this.showStep(Math.min(step, told.steps));
  }

  /** Show one visit; a step that does not exist changes nothing. */
  showStep(step) {
    const { memory, told, data } = this;
    if (!(step >= 0 && step <= told.steps)) return;
    this.step = step;
    this.cells.forEach((row, i) => row.forEach((cell, j) => {
      const [r, c] = [Math.floor(i / memory.queries), Math.floor(j / memory.keys)];
      const state = stateOf(told.at[r][c], step, isSkipped(r, c, memory, data.n));
      put(cell, "data-state", state);
      write(cell.firstChild, state === "now" && j <= i ? data.scores[i][j] : "");
    }));
    this.rows.forEach(([row, cells], i) => {
      const { state, texts } = rowAt(i, step, memory, told, data.d);
      put(row, "data-turn", state);
      row.toggleAttribute("data-final", texts.at(-1) !== "");
      cells.forEach((cell, column) => write(cell, texts[column]));
    });
    this.showAccesses(told.reads[step], told.writes[step]);
    Object.assign(this.root.dataset, { step, skipped: told.skipped[step] });
    this.showCount();
    write(this.sentence, told.sentences[step]);
    markAsked(this, null);
  }

  showAccesses(reads, writes) {
    const numbers = { reads, writes, accesses: reads + writes };
    for (const [name, number] of Object.entries(numbers)) write(this.texts[name], formatCount(number));
    [reads, writes].forEach((number, i) => { this.parts[i].style.width = `${(100 * number / this.data.longest).toFixed(2)}%`; });
    Object.assign(this.root.dataset, numbers);
  }

  ask({ set: { memory, order, step }, answer }, button) {
    this.user(() => this.choose(memory, order, step));
    write(this.sentence, answer);
    markAsked(this, button);
  }

  keeps(target, key) {
    return target.tagName === "SELECT" || super.keeps(target, key);
  }

  delay() {
    return Math.min(900, Math.max(160, 15000 / this.steps));
  }

  save() {
    this.tell({ memory: this.memory.m, order: this.root.dataset.order, step: this.step });
  }
}

export default { render: drawn("tile-sweep", SweepView) };
