// Runs the rows of a mask one by one. Python drew every mask and wrote every count and sentence: this module shows one
// of them and changes attributes and texts of its elements.

const PLAY = "M4 2.5v11L13 8z";
const PAUSE = "M4 3h3v10H4zM9 3h3v10H9z";
const BEAT = 450; // milliseconds a row
const MOVES = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, Home: -Infinity, End: Infinity };
const BUTTONS = { first: -Infinity, previous: -1, next: 1, last: Infinity };
const WAYS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

/** Where a move leads: never beyond the first row or the last. */
export function stepAfter(move, step, steps) {
  return Math.min(steps, Math.max(0, step + move));
}

export function stateOf(row, step) {
  return row >= step ? "future" : row === step - 1 ? "now" : "done";
}

/** What a cell says: the reason for its pair, with the names of its row and key. */
export function reasonOf({ rows, keys, why }, reasons, q, k) {
  const names = { row: rows[q], key: keys[k] };
  return reasons[parseInt(why[q][k], 36)].replace(/{(row|key)}/g, (_, name) => names[name]);
}

class GalleryView {
  constructor(root, model) {
    [this.root, this.model, this.abort] = [root, model, new AbortController()];
    this.data = model.get("data");
    this.collect();
    this.show(model.get("case"), model.get("step"));
    this.listen();
  }

  destroy() {
    this.pause();
    this.abort.abort();
    for (const name of ["case", "step"]) this.model.off(`change:${name}`, this.follow);
  }

  /** Look every element up once. */
  collect() {
    const one = (selector) => this.root.querySelector(selector);
    const all = (selector) => [...this.root.querySelectorAll(selector)];
    for (const controls of all(".pd-steps, .pd-questions, .pd-cell-line, [data-choose]")) controls.hidden = false;
    this.range = one("input[type=range]");
    this.count = one(".pd-count");
    this.playButton = one("[data-act=play]");
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
    const on = (target, type, handler) => target.addEventListener(type, handler, { signal: this.abort.signal });
    on(this.root, "click", ({ target }) => this.clicked(target));
    on(this.root, "input", () => this.userStep(Number(this.range.value)));
    on(this.root, "keydown", (event) => this.pressed(event));
    on(this.root, "pointerover", ({ target }) => this.explain(target.closest("td[data-q]")));
    on(this.root, "focusin", ({ target }) => this.explain(target.closest("td[data-q]")));
    on(window, "beforeprint", () => this.beforePrint());
    on(window, "afterprint", () => this.show(this.name, this.stepBeforePrint ?? this.step));
    this.follow = () => {
      if (this.saving) return;
      this.pause();
      this.show(this.model.get("case"), this.model.get("step"));
    };
    for (const name of ["case", "step"]) this.model.on(`change:${name}`, this.follow);
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
    this.range.value = this.step;
    this.range.setAttribute("aria-valuetext", `${this.step} of ${shown.steps} rows`);
    this.count.textContent = `${this.step} / ${shown.steps}`;
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
    if (choose) this.user(choose, this.data.cases[choose].steps);
    else if (act === "play") this.playing ? this.pause() : this.play();
    else if (act) this.userMove(BUTTONS[act]);
    else if (ask) this.answer(this.data.questions[ask], target.closest("button"));
    else this.explain(target.closest("td[data-q]"));
  }

  answer({ case: name, answer, cell: [q, k] }, button) {
    this.user(name, this.data.cases[name].steps);
    this.explain(this.cellAt(q, k));
    this.write(this.sentence, answer);
    this.markAsked(button);
  }

  markAsked(button) {
    this.asked?.setAttribute("aria-pressed", "false");
    this.asked = button;
    button?.setAttribute("aria-pressed", "true");
  }

  cellAt(q, k) {
    const { keys, rows } = this.data.cases[this.name];
    return q in rows && k in keys ? this.part.cells[q * keys.length + k] : null;
  }

  pressed(event) {
    const { target, key } = event;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (this.root.dataset.live === "lab") event.stopPropagation(); // JupyterLab's shortcuts would cut the cell or leave it
    if (event.shiftKey || target === this.range || (key === " " && target.tagName === "BUTTON")) return;
    if (target.dataset.q && key in WAYS) this.walk(target, WAYS[key]);
    else if (key === " ") this.playing ? this.pause() : this.play();
    else if (key in MOVES) this.userMove(MOVES[key]);
    else return;
    event.preventDefault();
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

  userMove(move) {
    this.userStep(stepAfter(move, this.step, this.data.cases[this.name].steps));
  }

  userStep(step) {
    this.user(this.name, step);
  }

  /** A reader changes something: Play stops, the model learns of it. */
  user(name, step) {
    this.pause();
    this.goTo(name, step);
  }

  goTo(name, step) {
    this.show(name, step);
    this.markAsked(null);
    this.saving = true;
    this.model.set("case", this.name);
    this.model.set("step", this.step);
    this.model.save_changes();
    this.saving = false;
  }

  play() {
    const { steps } = this.data.cases[this.name];
    if (this.step === steps) this.goTo(this.name, 0);
    this.showPlaying(true);
    this.timer = setInterval(() => {
      this.goTo(this.name, this.step + 1);
      if (this.step === steps) this.pause();
    }, BEAT);
  }

  pause() {
    clearInterval(this.timer);
    if (this.playing) this.showPlaying(false);
  }

  showPlaying(playing) {
    this.playing = playing;
    this.playButton.querySelector("path").setAttribute("d", playing ? PAUSE : PLAY);
    this.playButton.querySelector("span").textContent = playing ? "Pause" : "Play";
  }

  beforePrint() {
    this.pause();
    this.stepBeforePrint = this.step;
    this.show(this.name, this.data.cases[this.name].steps);
  }
}

function render({ model, el }) {
  const onPage = el.matches('[data-widget="mask-gallery"]');
  if (!onPage) el.innerHTML = model.get("markup");
  const root = onPage ? el : el.firstElementChild;
  root.tabIndex = 0;
  const view = new GalleryView(root, model);
  root.dataset.live = onPage ? "page" : "lab";
  return () => view.destroy();
}

export default { render };
