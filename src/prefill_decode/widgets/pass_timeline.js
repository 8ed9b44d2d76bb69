// Steps through a finished picture. Python drew it and computed every number, place and sentence: this module changes
// attributes and texts of the elements that are there.

/** Which pass and layer a step completes, both from 0; the choice of a token comes after the last layer. */
export function placeAt(step, layers) {
  if (step === 0) return { phase: "idle", pass: 0, layer: "none" };
  const [pass, layer] = [Math.floor((step - 1) / (layers + 1)), (step - 1) % (layers + 1)];
  return { phase: pass === 0 ? "prefill" : "decode", pass: pass + 1, layer: layer === layers ? "choice" : layer };
}

export function stateOf(at, step) {
  return at > step ? "future" : at === step ? "now" : "done";
}

/** Milliseconds that Play shows the step before this one: a slow layer is slow here too. */
export function delayFor(ms, steps) {
  const beat = Math.min(500, Math.max(160, 12000 / steps));
  const usual = [...ms].sort((a, b) => a - b)[Math.floor(ms.length / 2)];
  return ms.map((each) => beat * Math.min(5, Math.max(0.6, each / usual)));
}

class TimelineView extends SteppedView {
  constructor(root, model) {
    super(root, model);
    this.steps = this.data.schedule.steps;
    this.collect();
    this.step = this.steps;
    this.fromModel(); // fields keep what a browser restored; the model knows better
    this.listen();
  }

  /** Look every element up once. */
  collect() {
    const one = (selector) => this.root.querySelector(selector);
    const all = (selector) => [...this.root.querySelectorAll(selector)];
    this.at = Array.from({ length: this.steps + 1 }, () => []); // what each step brings
    for (const element of all("[data-at]")) this.at[element.dataset.at].push(element);
    this.times = all("[data-time]");
    this.segments = all(".pd-bar > *");
    this.passBoxes = all(".pd-pass");
    this.passes = one(".pd-passes");
    this.checkbox = one("input[type=checkbox]");
    this.range.style.setProperty("--pd-share", 1 / this.passBoxes.length);
    this.form = one("form");
    this.radios = all("input[type=radio]");
    this.rows = all("tr[data-scenario]");
    this.lanes = all("[data-lane]").map((lane) => [...lane.querySelectorAll("circle")]);
    this.chunks = all(".pd-chunk");
    this.busy = one(".pd-busy");
    const scene = (name) => one(`[data-scene=${name}] .pd-sentence`);
    this.sentences = { schedule: scene("schedule"), stall: scene("stall") };
    this.cards = ["ttft", "tpot"].map((name) => one(`[data-card=${name}]`));
  }

  listen() {
    this.on(this.root, "click", ({ target }) => {
      const button = target.closest("button");
      if (button?.dataset.act) this.act(button.dataset.act);
      if (button?.dataset.question) this.ask(this.data.questions[button.dataset.question]);
    });
    this.on(this.root, "input", ({ target }) => {
      if (target === this.range) this.userStep(Number(target.value));
      else if (target === this.checkbox) this.user(() => this.showSlow(target.checked));
      else if (target.type === "radio") this.user(() => this.showScenario(target.value));
    });
    this.on(this.form, "submit", (event) => event.preventDefault());
    this.listenToSteps(["step", "slow", "scenario"]);
  }

  fromModel() {
    this.showSlow(Boolean(this.model.get("slow")));
    this.showScenario(this.model.get("scenario"));
    this.showStep(this.model.get("step"));
  }

  /** Bring what the steps up to this one bring; a step that does not exist changes nothing. */
  showStep(step) {
    if (!(step >= 0 && step <= this.steps)) return;
    const [from, to] = [Math.min(step, this.step), Math.max(step, this.step)];
    this.step = step;
    for (let at = Math.max(1, from); at <= to; at += 1) {
      for (const element of this.at[at]) element.dataset.state = stateOf(at, step);
    }
    const { phase, pass, layer } = placeAt(step, this.data.schedule.layers);
    Object.assign(this.root.dataset, { step, phase, pass, layer });
    this.showCount();
    this.range.style.setProperty("--pd-at", step / this.steps);
    this.say("schedule", this.variant.sentences[step]);
  }

  /** Write the times of one state of "Slow layer". */
  showSlow(slow) {
    const variant = (this.variant = this.data.schedule.variants[slow ? 1 : 0]);
    const grow = (element, value) => { element.style.flexGrow = value; };
    this.times.forEach((element) => { element.textContent = variant.done[element.dataset.at - 1]; });
    this.segments.forEach((element) => grow(element, variant.ms[element.dataset.at - 1]));
    this.passBoxes.forEach((box, i) => {
      grow(box, variant.grow[i]);
      box.querySelector("b").textContent = variant.passes[i];
    });
    this.passes.style.width = `${variant.width}%`;
    this.cards.forEach((card, i) => {
      card.querySelector("b").textContent = variant.passes[i];
      card.querySelector(".pd-small").textContent = variant.formulas[i];
    });
    Object.assign(this.root.dataset, { slow: slow ? 1 : 0, ttftMs: variant.ttft, tpotMs: variant.tpot });
    this.checkbox.checked = slow;
    this.say("schedule", variant.sentences[this.step]);
  }

  /** Draw one simulation; a name that does not exist changes nothing. */
  showScenario(name) {
    const scenario = this.data.stall.scenarios.find((each) => each.name === name);
    if (!scenario) return;
    const place = (element, name_, value) => element.setAttribute(name_, `${value}%`);
    scenario.dots.forEach((dots, lane) => dots.forEach((x, i) => place(this.lanes[lane][i], "cx", x)));
    scenario.bars.forEach(([x, width], i) => {
      place(this.chunks[i], "x", x);
      place(this.chunks[i], "width", width);
    });
    place(this.busy, "x", scenario.busy[0]);
    place(this.busy, "width", scenario.busy[1]);
    this.showBracket("gap", scenario.gap);
    this.showBracket("ttft", scenario.ttft);
    this.rows.forEach((row) => {
      if (row.dataset.scenario === name) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    });
    this.radios.forEach((radio) => { radio.checked = radio.value === name; });
    Object.assign(this.root.dataset, { scenario: name, largestGapMs: scenario.gapMs });
    this.scenario = name;
    this.say("stall", scenario.sentence);
  }

  showBracket(name, { from, to, words, anchor, text, top }) {
    const bracket = this.root.querySelector(`[data-bracket=${name}]`);
    const [across, start, end, label] = bracket.children;
    const place = (line, x1, x2) => { line.setAttribute("x1", `${x1}%`); line.setAttribute("x2", `${x2}%`); };
    place(across, from, to);
    place(start, from, from);
    place(end, to, to);
    label.setAttribute("x", `${words}%`);
    label.setAttribute("text-anchor", anchor);
    label.textContent = text;
    bracket.setAttribute("transform", `translate(0 ${top})`);
  }

  /** Python wrote the sentence, tokens escaped. */
  say(scene, sentence) {
    if (this.sentences[scene].innerHTML !== sentence) this.sentences[scene].innerHTML = sentence;
  }

  ask({ scene, set, answer }) {
    this.user(() => {
      if ("slow" in set) this.showSlow(set.slow);
      if ("step" in set) this.showStep(set.step);
      if ("scenario" in set) this.showScenario(set.scenario);
    });
    this.say(scene, answer);
  }

  keeps(target, key) {
    return target.type === "radio" || (key === " " && target === this.checkbox) || super.keeps(target, key);
  }

  delay() {
    return delayFor(this.variant.ms, this.steps)[this.step];
  }

  save() {
    this.tell({ step: this.step, slow: this.root.dataset.slow === "1", scenario: this.scenario });
  }
}

export default { render: drawn("pass-timeline", TimelineView) };
