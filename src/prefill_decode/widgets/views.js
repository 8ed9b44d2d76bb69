// What views share: how numbers are written, how a view gets onto Python's picture, and for those that are stepped, keys,
// buttons, Play and print. Modules import nothing; Python puts this text before theirs, and a page has it once.

const PLAY = "M4 2.5v11L13 8z";
const PAUSE = "M4 3h3v10H4zM9 3h3v10H9z";
const MARKUP = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };

export function escapeHtml(text) {
  return text.replace(/[&<>"']/g, (character) => MARKUP[character]);
}

/** A whole number with a comma at every thousand; the browser's own formatter takes 30 ms to wake up. */
export function formatCount(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function percent(share) {
  return `${(100 * share).toFixed(2)}%`;
}

export function plain(number) {
  return String(Number(number.toPrecision(6)));
}

/** Change a text or an attribute that is another one: what stays the same costs nothing. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function put(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** Outline the question that a view was asked last; none, once something else is shown. */
export function markAsked(view, button) {
  view.asked?.setAttribute("aria-pressed", "false");
  view.asked = button;
  button?.setAttribute("aria-pressed", "true");
}

/** Return what anywidget calls: on a page the picture is there already, in JupyterLab it comes with the model. */
export function drawn(name, View) {
  return ({ model, el }) => {
    const onPage = el.matches(`[data-widget="${name}"]`);
    if (!onPage) el.innerHTML = model.get("markup");
    const root = onPage ? el : el.firstElementChild;
    for (const controls of root.querySelectorAll("[hidden]")) controls.hidden = false; // they make sense with a script
    const view = new View(root, model);
    root.dataset.live = onPage ? "page" : "lab";
    return () => view.destroy();
  };
}

/** Where a key leads among 0 .. last, or nothing. Up is more, as on a slider, unless `down` says that they are listed. */
export function indexForKey(key, index, last, down = false) {
  const [more, less] = down ? ["ArrowDown", "ArrowUp"] : ["ArrowUp", "ArrowDown"];
  if (key === "ArrowRight" || key === more) return Math.min(last, index + 1);
  if (key === "ArrowLeft" || key === less) return Math.max(0, index - 1);
  if (key === "Home") return 0;
  return key === "End" ? last : null;
}

/** Where a key leads: a step, "play", or nothing. */
export function stepForKey(key, step, steps, down = false) {
  return key === " " ? "play" : indexForKey(key, step, steps, down);
}

/** A view of `this.step` of `this.steps`: its class says how a step is shown, how long it stays, what the model is told. */
export class SteppedView {
  constructor(root, model) {
    [this.root, this.model, this.data, this.abort] = [root, model, model.get("data"), new AbortController()];
    [this.range, this.count] = [root.querySelector("input[type=range]"), root.querySelector(".pd-count")];
    this.playButton = root.querySelector("[data-act=play]");
    root.tabIndex = 0;
  }

  on(target, event, handler) {
    target.addEventListener(event, handler, { signal: this.abort.signal });
  }

  /** Listen to keys and paper, and to changes of the model that are not this view's own. */
  listenToSteps(traits) {
    this.on(this.root, "keydown", (event) => this.pressed(event));
    this.on(window, "beforeprint", () => this.beforePrint());
    this.on(window, "afterprint", () => this.showStep(this.stepBeforePrint ?? this.step));
    this.follow = () => {
      if (this.saving) return;
      this.pause();
      this.fromModel();
    };
    this.followed = traits.map((trait) => `change:${trait}`);
    for (const event of this.followed) this.model.on(event, this.follow);
  }

  destroy() {
    this.pause();
    this.abort.abort();
    for (const event of this.followed) this.model.off?.(event, this.follow);
  }

  tell(state) {
    this.saving = true;
    for (const [trait, value] of Object.entries(state)) this.model.set(trait, value);
    this.model.save_changes();
    this.saving = false;
  }

  act(name) {
    if (name === "play") return this.playing ? this.pause() : this.play();
    const { step, steps } = this;
    return this.userStep({ first: 0, previous: Math.max(0, step - 1), next: Math.min(steps, step + 1), last: steps }[name]);
  }

  /** Whether an element does something of its own with a key. */
  keeps(target, key) {
    return target === this.range || (key === " " && target.tagName === "BUTTON");
  }

  pressed(event) {
    const { target, key } = event;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (this.root.dataset.live === "lab") event.stopPropagation(); // JupyterLab's shortcuts would cut the cell or leave it
    if (event.shiftKey || this.keeps(target, key)) return;
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
    this.showPlaying(true);
    this.playOn();
  }

  playOn() {
    this.timer = setTimeout(() => {
      this.showStep(this.step + 1);
      if (this.step === this.steps) this.pause();
      else this.playOn();
      this.save();
    }, this.delay());
  }

  pause() {
    clearTimeout(this.timer);
    if (this.playing) this.showPlaying(false);
  }

  showPlaying(playing) {
    this.playing = playing;
    this.playButton.querySelector("path").setAttribute("d", playing ? PAUSE : PLAY);
    this.playButton.querySelector("span").textContent = playing ? "Pause" : "Play";
  }

  showCount(words) {
    const { step, steps } = this;
    this.range.value = step;
    this.range.setAttribute("aria-valuetext", words ?? `${step} of ${steps}`);
    this.count.textContent = `${step} / ${steps}`;
  }

  /** Paper gets the finished picture. */
  beforePrint() {
    this.pause();
    this.stepBeforePrint = this.step;
    this.showStep(this.steps);
  }
}
