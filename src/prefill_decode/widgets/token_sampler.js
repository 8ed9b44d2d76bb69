// Recomputes a distribution from the logits of the likeliest tokens, and of the rest from what Python found for every
// setting that is offered. Filters keep the likeliest tokens, so a number of tokens says what is kept ("depth").
// Pure functions come first, then the view: it writes texts and attributes into the picture that Python drew.

const SHOWN = 50;
const DECADES = 4;
const TOLD = 4;
const CHOICES = ["temperature", "top_k", "top_p", "min_p", "order", "seed", "draws"];
const STEPS = { temperature: "temperature", top_k: "top-k", top_p: "top-p", min_p: "min-p" };

export function share(p) {
  if (p === 0) return "0%";
  if (p > 1 - 1e-9) return "100%";
  const value = 100 * p;
  if (value < 0.01) return "<0.01%";
  return value >= 99.95 ? ">99.9%" : `${value.toFixed(value >= 9.995 ? 1 : 2)}%`;
}

/** How long a bar is, on a logarithmic scale. */
export function lengthOf(p) {
  return percent(p <= 0 ? 0 : Math.max(0, 1 + Math.log10(p) / DECADES));
}

export function valueOf(choice, step) {
  const number = choice[step];
  if (number === null) return "off";
  return step === "top_k" ? String(number) : number.toFixed(step === "temperature" ? 1 : 2);
}

/** Powers of the likeliest tokens at a temperature, the first one 1. */
export function powersOf(data, temperature) {
  if (temperature === 0) return data.logits.map((_, i) => Number(i === 0));
  return data.logits.map((logit) => Math.exp((logit - data.logits[0]) / temperature));
}

function sumOf(numbers) {
  return numbers.reduce((sum, each) => sum + each, 0);
}

/** The sum of powers of the likeliest tokens, as many as depth says. */
function massOf(data, temperature, depth) {
  const at = data.at[data.temperatures.indexOf(temperature)];
  return sumOf(powersOf(data, temperature).slice(0, depth)) + (depth > SHOWN ? at.rest[depth][0] : 0);
}

/** How many of the likeliest tokens have a share of what the first `depth` ones have together. */
function nucleusOf(data, temperature, depth, { top_p, min_p }) {
  const at = data.at[data.temperatures.indexOf(temperature)];
  const p = data.topP.indexOf(top_p);
  if (depth === at.all) return at.topP[p];
  if (depth > SHOWN) return at.joint[data.minP.indexOf(min_p)][p];
  const powers = powersOf(data, temperature).slice(0, depth);
  const total = sumOf(powers);
  let [before, kept] = [0, 0];
  while (kept < depth && before / total < top_p) before += powers[kept++];
  return kept;
}

/** Tokens left after each step, and what they have together where the filters look. */
export function leftOf(data, choice) {
  const at = (temperature) => data.at[data.temperatures.indexOf(temperature)];
  let [depth, heat, keptMass] = [data.vocabulary, 1, 1];
  const left = data.orders[choice.order].map((step) => {
    const before = depth;
    if (step === "temperature") [heat, depth] = [choice.temperature, Math.min(depth, at(choice.temperature).all)];
    else if (choice[step] !== null && depth > 1) {
      if (step === "top_k") depth = Math.min(depth, choice.top_k);
      else if (step === "top_p") depth = nucleusOf(data, heat, depth, choice);
      else depth = Math.min(depth, at(heat).minP[data.minP.indexOf(choice.min_p)]);
      if (depth < before) keptMass *= massOf(data, heat, depth) / massOf(data, heat, before);
    }
    return depth;
  });
  return { left, keptMass };
}

/** Where the interval of each token begins, in the order of ids; of a token too narrow to be seen, nothing. */
function segmentsOf(data, rest, after) {
  if (rest) return new Map(rest[1].map((start, rank) => [rank, [start / 1e4, after[rank]]]));
  let start = 0;
  return new Map(byId(data).filter((rank) => after[rank] > 0).map((rank) => {
    start += after[rank];
    return [rank, [start - after[rank], after[rank]]];
  }));
}

function byId({ ids }) {
  return ids.map((_, rank) => rank).sort((a, b) => ids[a] - ids[b]);
}

/** The token at which the sum of probabilities passes u: a rank, or SHOWN and more for one of the others. */
function drawOf(data, after, u) {
  let [sum, last] = [0, 0];
  for (const rank of byId(data)) {
    if (after[rank] === 0) continue;
    [sum, last] = [sum + after[rank], rank];
    if (sum > u) return rank;
  }
  return last;
}

/** Everything that a choice leads to. */
export function readingOf(data, choice) {
  const { left, keptMass } = leftOf(data, choice);
  const depth = left.at(-1);
  const at = data.at[data.temperatures.indexOf(choice.temperature)];
  const rest = depth > SHOWN ? at.rest[depth] : null;
  const total = massOf(data, choice.temperature, depth);
  const after = powersOf(data, choice.temperature).map((power, rank) => (rank < depth ? power / total : 0));
  const uniforms = data.uniforms[choice.seed];
  const first = Object.keys(data.uniforms).indexOf(String(choice.seed)) * uniforms.length;
  const drawn = uniforms.slice(0, choice.draws).map((u, i) => (rest ? rest[2][first + i] : drawOf(data, after, u)));
  return { left, keptMass, kept: depth, after, rest: rest ? rest[0] / total : 0, segments: segmentsOf(data, rest, after), drawn };
}

/** The id of a token: each of the others is told by what it is above the last. */
export function idOf(data, code) {
  return code < SHOWN ? data.ids[code] : sumOf(data.others.above.slice(0, code - SHOWN + 1));
}

function tokenOf(data, code) {
  return code < SHOWN ? data.tokens[code] : data.others.tokens[code - SHOWN];
}

/** The step that removed a token, nothing for one that is kept. */
function removedBy(data, choice, { left }, rank) {
  return data.orders[choice.order].find((_, i) => left[i] <= rank) ?? "";
}

export function numberOf(data, choice, reading, rank) {
  const by = removedBy(data, choice, reading, rank);
  if (by === "temperature") return `T = ${valueOf(choice, by)}`;
  return by ? STEPS[by] : share(reading.after[rank]);
}

function restOf(data, choice, reading) {
  const by = removedBy(data, choice, reading, SHOWN);
  return by ? `none kept (${STEPS[by]})` : `${share(reading.rest)}, ${formatCount(Math.max(0, reading.kept - SHOWN))} kept`;
}

export function sentenceOf(data, choice, reading) {
  return `${keptIn(data, choice, reading)} ${lastOf(data, choice, reading)}`;
}

function keptIn(data, choice, { kept, keptMass }) {
  if (kept === 1) return `${choice.temperature === 0 ? "T = 0 is greedy: one" : "One"} token is left, “${data.tokens[0]}”.`;
  if (kept === data.vocabulary) return `All ${formatCount(kept)} tokens are kept.`;
  const where = choice.order === "llama.cpp" ? "before heating" : `at T = ${valueOf(choice, "temperature")}`;
  return `${formatCount(kept)} of ${formatCount(data.vocabulary)} tokens are kept; ${where} they have ${share(keptMass)} together.`;
}

function lastOf(data, choice, { drawn, after }) {
  if (drawn.length === 0) return "Nothing is drawn yet.";
  const code = drawn.at(-1);
  const which = code < SHOWN ? share(after[code]) : "one of the rest";
  const u = data.uniforms[choice.seed][choice.draws - 1].toFixed(4);
  return `Draw ${choice.draws}: u = ${u} falls to “${tokenOf(data, code)}” (${which}).`;
}

export function tallyOf(data, choice, { drawn }) {
  if (drawn.length === 0) return `No draw of seed ${choice.seed} yet.`;
  const times = new Map();
  for (const code of drawn) times.set(code, (times.get(code) ?? 0) + 1);
  const counted = [...times].sort(([, a], [, b]) => b - a).slice(0, TOLD);
  const named = counted.map(([code, many]) => `“${tokenOf(data, code)}” ${many}`);
  const others = drawn.length - sumOf(counted.map(([, many]) => many));
  if (others) named.push(`others ${others}`);
  return `${drawn.length} draw${drawn.length === 1 ? "" : "s"} of seed ${choice.seed}: ${named.join(", ")}.`;
}

class SamplerView {
  constructor(root, model) {
    [this.root, this.model, this.data, this.abort] = [root, model, model.get("data"), new AbortController()];
    this.collect();
    this.fromModel();
    this.listen();
  }

  destroy() {
    this.abort.abort();
    for (const name of CHOICES) this.model.off?.(`change:${name}`, this.follow);
  }

  /** Look every element up once. */
  collect() {
    const all = (selector, inside = this.root) => [...inside.querySelectorAll(selector)];
    const bar = (row) => ({ row, after: row.querySelector("[data-bar=after]"), number: row.querySelector("b") });
    this.bars = all(".pd-bars > li").map(bar);
    this.rest = all(".pd-rest").map(bar)[0];
    [this.segments, this.ticks] = [all("[data-segment]"), all("[data-tick]")];
    this.texts = {};
    for (const element of all("[data-text]")) this.texts[element.dataset.text] = element;
    this.ranges = all("input");
    this.selects = all("select");
    this.values = all("[data-value]");
    this.asked = all("[data-ask]");
  }

  listen() {
    const on = (target, event, handler) => target.addEventListener(event, handler, { signal: this.abort.signal });
    on(this.root, "click", ({ target }) => {
      const { act, ask } = target.closest("button")?.dataset ?? {};
      if (act === "draw") this.draw();
      if (act === "restart") this.user({ draws: 0 });
      if (ask) this.answer(this.data.questions[ask], target.closest("button"));
    });
    on(this.root, "input", ({ target }) => this.user({ [target.name]: this.chosen(target) }));
    on(this.root, "keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (this.root.dataset.live === "lab") event.stopPropagation(); // JupyterLab's shortcuts would cut the cell or leave it
    });
    this.follow = () => this.saving || this.fromModel();
    for (const name of CHOICES) this.model.on(`change:${name}`, this.follow);
  }

  fromModel() {
    this.show(Object.fromEntries(CHOICES.map((name) => [name, this.model.get(name)])));
  }

  /** What a control is set to. */
  chosen({ name, value }) {
    const [data, at] = [this.data, Number(value)];
    if (name === "order") return value;
    if (name === "seed") return at;
    if (name === "temperature") return data.temperatures[at];
    if (name === "top_k") return at > SHOWN ? null : at;
    return (name === "top_p" ? data.topP[at] : data.minP[at - 1]) ?? null;
  }

  placeOf(name, { temperature, top_k, top_p, min_p }) {
    const { temperatures, topP, minP } = this.data;
    if (name === "temperature") return temperatures.indexOf(temperature);
    if (name === "top_k") return top_k ?? SHOWN + 1;
    if (name === "top_p") return top_p === null ? topP.length : topP.indexOf(top_p);
    return minP.indexOf(min_p) + 1; // null is at 0, in front of all
  }

  /** A reader changes something: the model learns of it. */
  user(change) {
    this.show({ ...this.choice, ...change });
    this.save();
  }

  draw() {
    const most = this.ticks.length;
    if (this.choice.draws < most) this.user({ draws: this.choice.draws + 1 });
    else write(this.texts.sentence, `All ${most} numbers of seed ${this.choice.seed} are used: start over, or choose another seed.`);
  }

  answer({ set, answer }, button) {
    this.user(set);
    write(this.texts.sentence, answer);
    button.setAttribute("aria-pressed", "true");
  }

  show(choice) {
    const { data } = this;
    const reading = readingOf(data, choice);
    this.choice = choice;
    for (const button of this.asked) button.removeAttribute("aria-pressed");
    this.showBars(choice, reading);
    this.showStrip(choice, reading);
    data.orders[choice.order].forEach((step, i) => {
      write(this.texts[`step-${i}`], `${STEPS[step]} ${valueOf(choice, step)}`);
      write(this.texts[`left-${i}`], `${formatCount(reading.left[i])} left`);
    });
    write(this.texts.sentence, sentenceOf(data, choice, reading));
    write(this.texts.tally, tallyOf(data, choice, reading));
    this.showControls(choice);
    this.tell(choice, reading);
  }

  showBars(choice, reading) {
    const last = reading.drawn.at(-1);
    this.bars.forEach(({ row, after, number }, rank) => {
      put(row, "data-state", rank >= reading.kept ? "removed" : last === rank ? "chosen" : "kept");
      after.style.width = lengthOf(reading.after[rank]);
      write(number, numberOf(this.data, choice, reading, rank));
    });
    if (!this.rest) return;
    put(this.rest.row, "data-state", reading.kept <= SHOWN ? "removed" : last >= SHOWN ? "chosen" : "kept");
    this.rest.after.style.width = lengthOf(reading.rest);
    write(this.rest.number, restOf(this.data, choice, reading));
  }

  showStrip(choice, { segments, drawn }) {
    this.segments.forEach((segment, rank) => {
      const [start, width] = segments.get(rank) ?? [0, 0];
      [segment.style.left, segment.style.width] = [percent(start), percent(width)];
      segment.toggleAttribute("data-placed", width > 0);
      segment.toggleAttribute("data-drawn", drawn.at(-1) === rank);
      segment.toggleAttribute("data-wide", width >= 0.1);
    });
    this.ticks.forEach((tick, i) => {
      tick.style.left = percent(this.data.uniforms[choice.seed][i]);
      put(tick, "data-state", i >= choice.draws ? "future" : i === choice.draws - 1 ? "now" : "done");
    });
  }

  showControls(choice) {
    for (const range of this.ranges) {
      range.value = this.placeOf(range.name, choice);
      range.setAttribute("aria-valuetext", valueOf(choice, range.name));
    }
    for (const shown of this.values) write(shown, valueOf(choice, shown.dataset.value));
    for (const select of this.selects) select.value = choice[select.name];
  }

  tell(choice, { kept, keptMass, drawn }) {
    const values = Object.fromEntries(Object.keys(STEPS).map((step) => [step, valueOf(choice, step)]));
    Object.assign(this.root.dataset, {
      temperature: values.temperature, topK: values.top_k, topP: values.top_p, minP: values.min_p, order: choice.order,
      kept, keptMass: plain(keptMass), seed: choice.seed, draws: choice.draws, token: drawn.length ? idOf(this.data, drawn.at(-1)) : "",
    });
  }

  save() {
    this.saving = true;
    for (const name of CHOICES) this.model.set(name, this.choice[name]);
    this.model.save_changes();
    this.saving = false;
  }
}

export default { render: drawn("token-sampler", SamplerView) };
