// Steps through a finished picture. Python drew it and computed every number, place and sentence: this module changes
// attributes and texts of the elements that are there.

const PLAY = "M4 2.5v11L13 8z";
const PAUSE = "M4 3h3v10H4zM9 3h3v10H9z";

/** Which pass and layer a step completes, both from 0; the choice of a token comes after the last layer. */
export function placeAt(step, layers) {
  if (step === 0) return { phase: "idle", pass: 0, layer: "none" };
  const [pass, layer] = [Math.floor((step - 1) / (layers + 1)), (step - 1) % (layers + 1)];
  return { phase: pass === 0 ? "prefill" : "decode", pass: pass + 1, layer: layer === layers ? "choice" : layer };
}

export function stateOf(at, step) {
  return at > step ? "future" : at === step ? "now" : "done";
}

/** Where a key leads: a step, "play", or nothing. */
export function stepForKey(key, step, steps) {
  if (key === "ArrowRight" || key === "ArrowUp") return Math.min(steps, step + 1);
  if (key === "ArrowLeft" || key === "ArrowDown") return Math.max(0, step - 1);
  if (key === "Home") return 0;
  if (key === "End") return steps;
  return key === " " ? "play" : null;
}

/** Milliseconds that Play shows the step before this one: a slow layer is slow here too. */
export function delayFor(ms, steps) {
  const beat = Math.min(500, Math.max(160, 12000 / steps));
  const usual = [...ms].sort((a, b) => a - b)[Math.floor(ms.length / 2)];
  return ms.map((each) => beat * Math.min(5, Math.max(0.6, each / usual)));
}

class TimelineView {
  constructor(root, model) {
    this.root = root;
    this.model = model;
    this.data = model.get("data");
    this.steps = this.data.schedule.steps;
    this.abort = new AbortController();
    this.collect();
    // Fields keep what a browser restored; the model knows better.
    this.step = this.steps;
    this.showSlow(Boolean(model.get("slow")));
    this.showScenario(model.get("scenario"));
    this.showStep(model.get("step"));
    this.listen();
  }

  destroy() {
    this.pause();
    this.abort.abort();
    for (const [event, handler] of this.modelHandlers) this.model.off?.(event, handler);
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
    this.range = one("input[type=range]");
    this.count = one(".pd-count");
    this.playButton = one("[data-act=play]");
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
    for (const controls of all(".pd-steps, .pd-choices, .pd-scenarios")) controls.hidden = false;
  }

  listen() {
    const { root } = this;
    const on = (target, event, handler) => target.addEventListener(event, handler, { signal: this.abort.signal });
    on(root, "click", ({ target }) => {
      const button = target.closest("button");
      if (button?.dataset.act) this.act(button.dataset.act);
      if (button?.dataset.question) this.ask(this.data.questions[button.dataset.question]);
    });
    on(root, "input", ({ target }) => {
      if (target === this.range) this.userStep(Number(target.value));
      else if (target === this.checkbox) this.user(() => this.showSlow(target.checked));
      else if (target.type === "radio") this.user(() => this.showScenario(target.value));
    });
    on(root, "keydown", (event) => this.pressed(event));
    on(this.form, "submit", (event) => event.preventDefault());
    on(window, "beforeprint", () => this.beforePrint());
    on(window, "afterprint", () => this.showStep(this.stepBeforePrint ?? this.step));
    this.modelHandlers = [
      ["change:step", () => this.fromModel(() => this.showStep(this.model.get("step")))],
      ["change:slow", () => this.fromModel(() => this.showSlow(this.model.get("slow")))],
      ["change:scenario", () => this.fromModel(() => this.showScenario(this.model.get("scenario")))],
    ];
    for (const [event, handler] of this.modelHandlers) this.model.on(event, handler);
  }

  fromModel(show) {
    if (this.saving) return;
    this.pause();
    show();
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
    this.range.value = step;
    this.range.style.setProperty("--pd-at", step / this.steps);
    this.range.setAttribute("aria-valuetext", `${step} of ${this.steps}`);
    this.count.textContent = `${step} / ${this.steps}`;
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

  act(name) {
    if (name === "play") return this.playing ? this.pause() : this.play();
    return this.userStep({ first: 0, previous: Math.max(0, this.step - 1), next: Math.min(this.steps, this.step + 1), last: this.steps }[name]);
  }

  ask({ scene, set, answer }) {
    this.user(() => {
      if ("slow" in set) this.showSlow(set.slow);
      if ("step" in set) this.showStep(set.step);
      if ("scenario" in set) this.showScenario(set.scenario);
    });
    this.say(scene, answer);
  }

  pressed(event) {
    const { target, key } = event;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (this.root.dataset.live === "lab") event.stopPropagation(); // JupyterLab's shortcuts would cut the cell or leave it
    if (event.shiftKey || target.type === "radio" || target === this.range) return;
    if (key === " " && (target.tagName === "BUTTON" || target === this.checkbox)) return;
    const wanted = stepForKey(key, this.step, this.steps);
    if (wanted === null) return;
    if (wanted === "play") this.act("play");
    else this.userStep(wanted);
    event.preventDefault();
  }

  /** A reader changes something: Play stops, the model learns of it. */
  user(change) {
    this.pause();
    change();
    this.save();
  }

  userStep(step) {
    this.user(() => this.showStep(step));
  }

  play() {
    if (this.step === this.steps) this.showStep(0);
    this.playing = true;
    this.showPlaying();
    this.playOn();
  }

  playOn() {
    this.timer = setTimeout(() => {
      this.showStep(this.step + 1);
      if (this.step === this.steps) this.pause();
      else this.playOn();
      this.save();
    }, delayFor(this.variant.ms, this.steps)[this.step]);
  }

  pause() {
    clearTimeout(this.timer);
    if (!this.playing) return;
    this.playing = false;
    this.showPlaying();
  }

  showPlaying() {
    this.playButton.querySelector("path").setAttribute("d", this.playing ? PAUSE : PLAY);
    this.playButton.querySelector("span").textContent = this.playing ? "Pause" : "Play";
  }

  beforePrint() {
    this.pause();
    this.stepBeforePrint = this.step;
    this.showStep(this.steps);
  }

  save() {
    this.saving = true;
    this.model.set("step", this.step);
    this.model.set("slow", this.root.dataset.slow === "1");
    this.model.set("scenario", this.scenario);
    this.model.save_changes();
    this.saving = false;
  }
}

function render({ model, el }) {
  const onPage = el.matches('[data-widget="pass-timeline"]');
  if (!onPage) el.innerHTML = model.get("markup");
  const root = onPage ? el : el.firstElementChild;
  root.tabIndex = 0;
  const view = new TimelineView(root, model);
  root.dataset.live = onPage ? "page" : "lab";
  return () => view.destroy();
}

export default { render };
