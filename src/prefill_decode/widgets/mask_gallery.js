// Runs the rows of a mask one by one. Python drew every mask and wrote every count and sentence: this module shows one
// of them and changes attributes and texts of its elements.

const BEAT = 450; // milliseconds a row
const WAYS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

export function stateOf(row, step) {
  return row >= step ? "future" : row === step - 1 ? "now" : "done";
}

/** What a cell says: the reason for its pair, with the names of its row and key. */
export function reasonOf({ rows, keys, why }, reasons, q, k) {
  const names = { row: rows[q], key: keys[k] };
  return reasons[parseInt(why[q][k], 36)].replace(/{(row|key)}/g, (_, name) => names[name]);
}

class GalleryView extends SteppedView {
  constructor(root, model) {
    super(root, model);
    this.collect();
    this.fromModel();
    this.listen();
  }

  get steps() {
    return this.data.cases[this.name].steps;
  }

  /** Look every element up once. */
  collect() {
    const one = (selector) => this.root.querySelector(selector);
    const all = (selector) => [...this.root.querySelectorAll(selector)];
    this.sentence = one(".pd-sentence");
    this.cellLine = one(".pd-cell-line p");
    this.hint = this.cellLine.textContent;
    this.buttons = all("[data-choose]");
    this.parts = {};
    for (const section of all("[data-mask]")) {
      const inside = (selector) => [...section.querySelectorAll(selector)];
      const cells = inside("td[data-q]");
      section.querySelector(".pd-mask").setAttribute("role", "grid"); // its cells are reached by arrow keys
      this.parts[section.dataset.mask] = { section, cells, rows: inside("tr[data-row]"), soFar: inside("[data-so-far]"), at: cells[0] };
      cells[0].tabIndex = 0;
    }
  }

  listen() {
    this.on(this.root, "click", ({ target }) => this.clicked(target));
    this.on(this.root, "input", () => this.userStep(Number(this.range.value)));
    this.on(this.root, "pointerover", ({ target }) => this.explain(target.closest("td[data-q]")));
    this.on(this.root, "focusin", ({ target }) => this.explain(target.closest("td[data-q]")));
    this.listenToSteps(["case", "step"]);
  }

  fromModel() {
    this.show(this.model.get("case"), this.model.get("step"));
  }

  /** Show a mask with its first rows run; a mask that does not exist changes nothing. */
  show(name, step) {
    const shown = this.data.cases[name];
    if (!shown || !(step >= 0)) return;
    if (name !== this.name) this.choose(name);
    this.step = Math.min(step, shown.steps);
    this.part.rows.forEach((row, i) => this.set(row, "run", stateOf(i, this.step)));
    const soFar = { rows: this.step, pairs: shown.pairs[this.step], rest: this.step < shown.steps ? ` of ${shown.allowed}` : "" };
    for (const element of this.part.soFar) this.write(element, soFar[element.dataset.soFar]);
    this.set(this.root, "step", this.step);
    this.set(this.root, "pairs", soFar.pairs);
    this.showCount(`${this.step} of ${shown.steps} rows`);
    this.write(this.sentence, shown.sentences[this.step]);
  }

  choose(name) {
    const { steps, allowed, dense, formula, wastedRows } = this.data.cases[name];
    [this.name, this.part] = [name, this.parts[name]];
    for (const { section } of Object.values(this.parts)) section.toggleAttribute("data-chosen", section === this.part.section);
    for (const button of this.buttons) button.setAttribute("aria-pressed", button.dataset.choose === name);
    Object.assign(this.root.dataset, { case: name, steps, allowed, dense, formula, wastedRows });
    this.range.max = steps;
    this.point(null);
    this.cellLine.textContent = this.hint;
  }

  set(element, name, value) {
    if (element.dataset[name] !== String(value)) element.dataset[name] = value;
  }

  write(element, text) {
    if (element.textContent !== String(text)) element.textContent = text;
  }

  /** Say why the row of a cell may read its key. */
  explain(cell) {
    if (!cell || cell === this.pointed) return;
    const { q, k } = cell.dataset;
    this.point(cell);
    this.cellLine.textContent = reasonOf(this.data.cases[this.name], this.data.reasons, q, k);
  }

  point(cell) {
    this.pointed?.removeAttribute("data-pointed");
    this.pointed = cell;
    cell?.setAttribute("data-pointed", "");
  }

  clicked(target) {
    const { choose, act, ask } = target.closest("button")?.dataset ?? {};
    if (choose) this.user(() => this.goTo(choose, this.data.cases[choose].steps));
    else if (act) this.act(act);
    else if (ask) this.answer(this.data.questions[ask], target.closest("button"));
    else this.explain(target.closest("td[data-q]"));
  }

  answer({ case: name, answer, cell: [q, k] }, button) {
    this.user(() => this.goTo(name, this.data.cases[name].steps));
    this.explain(this.cellAt(q, k));
    this.write(this.sentence, answer);
    markAsked(this, button);
  }

  cellAt(q, k) {
    const { keys, rows } = this.data.cases[this.name];
    return q in rows && k in keys ? this.part.cells[q * keys.length + k] : null;
  }

  pressed(event) {
    const { target, key } = event;
    const isPlain = !(event.ctrlKey || event.altKey || event.metaKey || event.shiftKey);
    if (!(isPlain && target.dataset.q && key in WAYS)) return super.pressed(event);
    if (this.root.dataset.live === "lab") event.stopPropagation();
    this.walk(target, WAYS[key]);
    return event.preventDefault();
  }

  /** Move the focus in the grid, which is one stop of the Tab key. */
  walk({ dataset }, [down, right]) {
    const cell = this.cellAt(Number(dataset.q) + down, Number(dataset.k) + right);
    if (!cell) return;
    this.part.at.removeAttribute("tabindex");
    this.part.at = cell;
    cell.tabIndex = 0;
    cell.focus();
  }

  showStep(step) {
    this.goTo(this.name, step);
  }

  goTo(name, step) {
    this.show(name, step);
    markAsked(this, null);
  }

  delay() {
    return BEAT;
  }

  save() {
    this.tell({ case: this.name, step: this.step });
  }
}

export default { render: drawn("mask-gallery", GalleryView) };
