// One way of storing at a time. Python wrote every number, sentence and place; this module picks those of a way and
// writes them into the elements that are there.

class CompressorView {
  constructor(root, model) {
    [this.root, this.model, this.abort] = [root, model, new AbortController()];
    this.data = model.get("data");
    root.tabIndex = 0;
    this.collect();
    this.show(model.get("storage"));
    this.listen();
  }

  destroy() {
    this.abort.abort();
    this.model.off("change:storage", this.follow);
  }

  /** Look every element up once. */
  collect() {
    const all = (selector) => [...this.root.querySelectorAll(selector)];
    [this.written, this.placed, this.asks] = [all("[data-text]"), all("[data-place]"), all("[data-ask]")];
    [this.radios, this.rows, this.lines] = [all("input"), all("[data-row]"), all("[data-text-of]")];
    this.names = this.radios.map((radio) => radio.value);
    this.sentence = this.root.querySelector(".pd-sentence");
  }

  listen() {
    const on = (type, handler) => this.root.addEventListener(type, handler, { signal: this.abort.signal });
    on("input", ({ target }) => this.choose(target.value));
    on("submit", (event) => event.preventDefault());
    on("click", ({ target }) => this.answer(target.closest("[data-ask]")));
    on("keydown", (event) => this.pressed(event));
    this.follow = () => this.saving || this.show(this.model.get("storage"));
    this.model.on("change:storage", this.follow);
  }

  pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (this.root.dataset.live === "lab") event.stopPropagation(); // JupyterLab's shortcuts would cut the cell or leave it
    const index = event.target === this.root ? indexForKey(event.key, this.names.indexOf(this.name), this.names.length - 1, true) : null;
    if (index === null || event.shiftKey) return;
    event.preventDefault();
    this.choose(this.names[index]);
  }

  answer(button) {
    if (!button) return;
    const { storage, answer } = this.data.questions[button.dataset.ask];
    this.choose(storage, answer);
    button.setAttribute("aria-pressed", "true");
  }

  choose(name, said) {
    this.show(name, said);
    this.saving = true;
    this.model.set("storage", name);
    this.model.save_changes();
    this.saving = false;
  }

  /** Show a way of storing, with its own sentence or the answer to a question; an unknown one changes nothing. */
  show(name, said) {
    const way = this.data.ways[name];
    if (!way) return;
    this.name = name;
    for (const element of this.written) {
      if (element !== this.sentence) this.write(element, way.texts[element.dataset.text]);
    }
    this.write(this.sentence, said ?? way.texts.sentence);
    for (const element of this.placed) this.setAll(element, way.places[element.dataset.place]);
    for (const row of this.rows) row.dataset.row === name ? row.setAttribute("aria-current", "true") : row.removeAttribute("aria-current");
    for (const line of this.lines) line.toggleAttribute("data-chosen", line.dataset.textOf === name);
    for (const radio of this.radios) radio.checked = radio.value === name;
    for (const button of this.asks) button.setAttribute("aria-pressed", "false");
    Object.assign(this.root.dataset, way.attributes);
  }

  write(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  setAll(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  }
}

export default { render: drawn("cache-compressor", CompressorView) };
