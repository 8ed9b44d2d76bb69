// Four ledgers of prefill and of the decode pass after it. Python computed every number and every place, for each model
// and each length; this module picks them and writes them into the elements that are there.

/** The entry of a length; a list of one holds for all of them. */
export function pick(values, index) {
  return values.length > 1 ? values[index] : values[0];
}

class LedgerView {
  constructor(root, model) {
    [this.root, this.model, this.abort] = [root, model, new AbortController()];
    this.data = model.get("data");
    root.tabIndex = 0;
    this.collect();
    this.listen();
    this.fromModel();
  }

  destroy() {
    this.abort.abort();
    for (const name of ["model", "n"]) this.model.off(`change:${name}`, this.follow);
  }

  collect() {
    const by = (attribute) => [...this.root.querySelectorAll(`[${attribute}]`)].map((element) => [element.getAttribute(attribute), element]);
    [this.written, this.placed, this.questions] = [by("data-text"), by("data-place"), by("data-ask")];
    this.select = this.root.querySelector("select");
    this.range = this.root.querySelector("input");
    this.name = this.root.querySelector("[data-model-name]");
    this.sentence = this.root.querySelector(".pd-sentence");
  }

  listen() {
    const { signal } = this.abort;
    const on = (type, handler) => this.root.addEventListener(type, handler, { signal });
    on("input", () => this.choose(this.select.value, Number(this.range.value)));
    on("click", ({ target }) => this.asked(target.closest("[data-ask]")));
    on("keydown", (event) => this.pressed(event));
    this.follow = () => this.saving || this.fromModel();
    for (const name of ["model", "n"]) this.model.on(`change:${name}`, this.follow);
  }

  fromModel() {
    this.show(this.model.get("model"), this.data.lengths.indexOf(this.model.get("n")));
  }

  pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    event.stopPropagation(); // JupyterLab would take it
    const index = event.target === this.root ? indexForKey(event.key, this.index, this.data.lengths.length - 1) : null;
    if (index === null) return;
    event.preventDefault();
    this.choose(this.model.get("model"), index);
  }

  asked(button) {
    if (!button) return;
    const name = this.model.get("model");
    const { n, text } = this.data.models[name].answers[button.dataset.ask];
    this.choose(name, this.data.lengths.indexOf(n));
    this.write(this.sentence, text);
    button.setAttribute("aria-pressed", "true");
  }

  choose(name, index) {
    this.show(name, index);
    for (const [, button] of this.questions) button.setAttribute("aria-pressed", "false");
    this.saving = true;
    this.model.set("model", name);
    this.model.set("n", this.data.lengths[index]);
    this.model.save_changes();
    this.saving = false;
  }

  show(name, index) {
    const { texts, places } = this.data.models[name];
    this.index = index;
    for (const [key, element] of this.written) this.write(element, pick(texts[key], index));
    for (const [key, element] of this.placed) this.setAttributes(element, pick(places[key], index));
    for (const [key, source] of Object.entries(this.data.attributes)) {
      this.root.setAttribute(`data-${key}`, pick(texts[source], index).replaceAll(",", ""));
    }
    this.setAttributes(this.root, { "data-model": name, "data-n": this.data.lengths[index] });
    this.write(this.name, name);
    [this.select.value, this.range.value] = [name, index];
    this.range.setAttribute("aria-valuetext", pick(texts.n, index));
  }

  write(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  setAttributes(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
    }
  }
}

/** In a notebook the picture comes with the model; its controls leave the wrapping that keeps them from viewers. */
export default { render: drawn("ledger-table", LedgerView) };
