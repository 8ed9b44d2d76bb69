// Prefill and decode under a device's roof. Python drew the picture and sent a few coefficients; this module finds the
// numbers of another choice from them and writes texts and attributes into the elements that are there.
// Pure functions come first, then the view.

const CHOICES = ["model", "device", "dtype", "prompt_len", "batch"];
const LARGEST = { prompt_len: 131072, batch: 4096 };
const NAMES = { prompt_len: "Prompt length", batch: "Batch" };
const PREFIXES = ["", "k", "M", "G", "T", "P", "E", "Z"];
const PLOT_HEIGHT = 300; // px, as in roofline.css
const LINE = 16; // px
const NAME_FOOT = 28; // px from the flat roof down: there words over the slope are clear of a name over the roof
const NARROW = 0.29; // what the words of the limit take of the narrowest picture
const IDEAL = { compute: 1, reach: 1, overhead: 0, prefillOverhead: 0 };

export function digits(number) {
  if (number === 0) return "0";
  const rounded = number.toPrecision(3);
  return Number(rounded) < 1000 ? rounded : formatCount(Math.round(number));
}

export function short(number, unit) {
  let [value, prefix] = [number, 0];
  while (Number(value.toPrecision(3)) >= 1000 && prefix < PREFIXES.length - 1) [value, prefix] = [value / 1000, prefix + 1];
  return `${digits(value)} ${PREFIXES[prefix]}${unit}`;
}

export function duration(seconds) {
  return seconds * 1000 < 1000 ? `${digits(seconds * 1000)} ms` : `${digits(seconds)} s`;
}

export function memory(bytes) {
  return `${digits(bytes / 1e9)} GB (${digits(bytes / 2 ** 30)} GiB)`;
}

/** Whole numbers from 1 to the largest, about eight to a doubling: the places of a logarithmic slider. */
export function stops(largest) {
  const places = Array.from({ length: 8 * Math.log2(largest) + 1 }, (_, i) => Math.round(2 ** (i / 8)));
  return [...new Set(places)];
}

export function nearestStop(value, places) {
  const distance = (place) => Math.abs(Math.log(place / value));
  return places.reduce((best, place, i) => (distance(place) < distance(places[best]) ? i : best), 0);
}

/** What is wrong with a typed number, or nothing. */
export function complaint(name, text, kept) {
  const value = Number(text);
  if (text.trim() !== "" && Number.isInteger(value) && value >= 1 && value <= LARGEST[name]) return "";
  return `${NAMES[name]}: expected a whole number from 1 to ${formatCount(LARGEST[name])}; it stays ${formatCount(kept)}.`;
}

/** FLOPs and bytes of one pass of `batch` sequences: rows of new tokens, the last of which reads `keys`. */
export function workOf(model, dtype, rows, keys, batch) {
  const pairs = rows * (keys - rows) + (rows * (rows + 1)) / 2;
  return {
    flops: batch * (rows * model.row + pairs * model.pair + model.head),
    weights: Math.ceil((model.read * dtype.weight) / 8),
    read: (batch * model.kv * keys * dtype.value) / 8,
    written: (batch * model.kv * rows * dtype.value) / 8,
  };
}

export function intensityOf(work) {
  return work.flops / (work.weights + work.read);
}

/** Seconds of a pass: overhead, and the slower of arithmetic and memory traffic. */
export function secondsOf(work, rate, device, reached, layers, isPrefill) {
  const bytes = work.weights + work.read + work.written;
  const arithmetic = work.flops / (reached.compute * rate);
  const overhead = isPrefill ? reached.prefillOverhead : reached.overhead;
  return layers * overhead + Math.max(arithmetic, bytes / (reached.reach * device.bandwidth));
}

export function promptAtRidge(model, dtype, ridge) {
  let [low, high] = [1, LARGEST.prompt_len + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (intensityOf(workOf(model, dtype, middle, middle, 1)) >= ridge) high = middle;
    else low = middle + 1;
  }
  return low > LARGEST.prompt_len ? null : low;
}

/** The smallest batch whose decode after n tokens reaches the ridge: flops · B / (weights + cache · B). */
export function batchAtRidge(model, dtype, ridge, n) {
  const one = workOf(model, dtype, 1, n + 1, 1);
  const gain = one.flops - ridge * one.read;
  return gain <= 0 ? null : Math.max(1, Math.ceil((ridge * one.weights) / gain));
}

/** Everything that a choice leads to. */
export function readingOf(data, choice) {
  const [model, device, dtype] = [data.models[choice.model], data.devices[choice.device], data.dtypes[choice.dtype]];
  const { prompt_len: n, batch } = choice;
  const rate = device.rates[dtype.rate];
  const ridge = rate / device.bandwidth;
  const m = data.newTokens;
  const pass = (rows, keys, isPrefill) => {
    const seconds = (work, reached) => secondsOf(work, rate, device, reached, model.layers, isPrefill);
    const work = workOf(model, dtype, rows, keys, batch);
    const intensity = intensityOf(work);
    const bound = intensity >= ridge ? "compute" : "memory";
    return { work, intensity, bound, least: seconds(work, IDEAL), about: seconds(work, device) };
  };
  const [prefill, decode, mean] = [pass(n, n, true), pass(1, n + 1, false), pass(1, n + m / 2, false)];
  const one = workOf(model, dtype, 1, n + 1, 1);
  const weights = Math.ceil((model.stored * dtype.weight) / 8);
  const cacheOfOne = (model.kv * (n + m - 1) * dtype.value) / 8;
  return {
    prefill, decode, ridge, rate, weights,
    bandwidth: device.bandwidth, memory: device.memory, cache: batch * cacheOfOne,
    ttft: prefill.about, tpot: mean.about, tpotLeast: mean.least, whole: prefill.about + (m - 1) * mean.about, wholeLeast: prefill.least + (m - 1) * mean.least,
    promptAtRidge: promptAtRidge(model, dtype, ridge), batchAtRidge: batchAtRidge(model, dtype, ridge, n),
    decodeLimit: one.flops / one.read,
    fits: weights + batch * cacheOfOne <= device.memory,
    largestBatch: Math.max(0, Math.floor((device.memory - weights) / cacheOfOne)),
  };
}

export function attributesOf(choice, reading) {
  const { prefill, decode } = reading;
  return {
    "data-model": choice.model, "data-device": choice.device, "data-dtype": choice.dtype,
    "data-prompt-len": choice.prompt_len, "data-batch": choice.batch,
    "data-prefill-bound": prefill.bound, "data-decode-bound": decode.bound,
    "data-prefill-intensity": plain(prefill.intensity), "data-decode-intensity": plain(decode.intensity),
    "data-ttft-ms": plain(reading.ttft * 1000), "data-tpot-ms": plain(reading.tpot * 1000), "data-ridge": plain(reading.ridge),
  };
}

function plural(number, word) {
  return `${formatCount(number)} ${word}${number === 1 ? "" : "s"}`;
}

function promptsOf({ batch, prompt_len: n }) {
  return `${plural(batch, "prompt")} of ${plural(n, "token")}`;
}

/** What stands in every element that has a data-text. */
export function textsOf(data, choice, reading) {
  const label = data.dtypes[choice.dtype].label;
  const model = data.models[choice.model];
  const each = choice.batch > 1 ? " each" : "";
  return {
    caption: `${choice.model} on ${choice.device} · ${label} · ${promptsOf(choice)}, ${formatCount(data.newTokens)} new tokens${each}`,
    ...deviceTexts(data, choice),
    ...passTexts("prefill", reading.prefill, choice.batch * choice.prompt_len),
    ...passTexts("decode", reading.decode, choice.batch),
    ...ridgeTexts(reading),
    ...requestTexts(choice, reading),
    ...memoryTexts(reading),
    "weights-read": model.read === model.stored ? "all that are stored" : "without the looked-up embedding",
    reached: reachedText(data, choice),
    sentence: sentenceOf(choice, reading),
  };
}

function deviceTexts(data, choice) {
  const device = data.devices[choice.device];
  const { rate } = data.dtypes[choice.dtype];
  return {
    peak: `${short(device.rates[rate], "FLOP/s")} in ${data.dtypes[rate].label}`,
    bandwidth: short(device.bandwidth, "B/s"),
    memory: short(device.memory, "B"),
    class: device.class,
  };
}

function passTexts(phase, { work, intensity, bound, least, about }, rows) {
  const texts = {
    rows: formatCount(rows), flops: short(work.flops, "FLOP"), weights: short(work.weights, "B"), read: short(work.read, "B"),
    written: short(work.written, "B"), intensity: digits(intensity), bound, least: duration(least), about: duration(about),
    name: `${phase}: ${bound} binds`, at: `${digits(intensity)} FLOP per byte`,
  };
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [`${phase}-${name}`, text]));
}

function ridgeTexts({ ridge, promptAtRidge: prompt, batchAtRidge: batch, decodeLimit, largestBatch }) {
  const few = batch === null || batch <= largestBatch ? "" : `, ${formatCount(largestBatch)} fit`;
  return {
    ridge: `ridge: ${digits(ridge)} FLOP/byte`,
    "ridge-prompt": prompt === null ? "no prompt reaches it" : `= prompt of ${plural(prompt, "token")}`,
    "prompt-at-ridge": prompt === null ? "none up to 131,072" : `${plural(prompt, "token")}, batch 1`,
    "batch-at-ridge": batch === null ? `never: ${digits(decodeLimit)} at most` : `${formatCount(batch)} requests${few}`,
    "limit-name": "batch → ∞:",
    "limit-at": digits(decodeLimit),
  };
}

function requestTexts({ batch }, reading) {
  return {
    ttft: duration(reading.ttft), "ttft-least": duration(reading.prefill.least),
    tpot: duration(reading.tpot), "tpot-least": duration(reading.tpotLeast),
    rate: `${digits(1 / reading.tpot)} tokens/s`, "rate-all": `${digits(batch / reading.tpot)} tokens/s`,
    whole: duration(reading.whole), "whole-least": duration(reading.wholeLeast),
  };
}

function memoryTexts(reading) {
  const { weights, cache, largestBatch: largest } = reading;
  const [used, has] = [short(weights + cache, "B"), short(reading.memory, "B")];
  const such = plural(largest, "such request");
  return {
    "memory-weights": short(weights, "B"), "memory-cache": memory(cache), "memory-all": `${used} of ${has}: ${reading.fits ? "fits" : "does not fit"}`, largest: largest ? such : "not even one such request",
    unfit: reading.fits ? "" :
      `Does not fit: weights ${short(weights, "B")} + cache ${short(cache, "B")} = ${used}, the device has ${has}.` +
      ` ${largest ? `At most ${such} fit` : "Not even one such request fits"}; the times are those of a larger memory.`,
  };
}

function reachedText(data, choice) {
  const { compute, reach, overhead, prefillOverhead, judged } = data.devices[choice.device];
  const waits = (seconds) => digits(1000 * data.models[choice.model].layers * seconds);
  return (
    `“About” counts on ${digits(100 * compute)} % of the peak, ${digits(100 * reach)} % of the bandwidth and ` +
    `${waits(prefillOverhead)} ms of overhead in prefill and ${waits(overhead)} ms in a decode pass; ${judged}.`
  );
}

export function sentenceOf(choice, { prefill, decode, ridge }) {
  const rows = choice.batch > 1 ? `${formatCount(choice.batch)} tokens, one a request` : "1 token";
  return (
    `Prefill of ${promptsOf(choice)}: ${digits(prefill.intensity)} FLOP per byte, ` +
    `${prefill.bound === "compute" ? "above" : "below"} the ridge of ${digits(ridge)}, so ${prefill.bound} binds: ` +
    `${duration(prefill.least)} at least. Decode of ${rows}: ${digits(decode.intensity)} FLOP per byte, ` +
    `so ${decode.bound} binds: ${duration(decode.least)} at least.`
  );
}

/** The attributes of every element that has a data-place: shares of the picture, distances in pixels. */
export function placesOf(data, reading) {
  const [[x0, x1], [y0, y1]] = [data.axes.x, data.axes.y];
  const { ridge, rate, bandwidth, memory: has, weights, cache } = reading;
  const x = (intensity) => (Math.log10(intensity) - x0) / (x1 - x0);
  const y = (speed) => (y1 - Math.log10(speed)) / (y1 - y0);
  const at = (intensity) => [x(intensity), y(Math.min(rate, bandwidth * intensity))];
  const [corner, flat] = [percent(x(ridge)), percent(y(rate))];
  const [prefill, decode, limit] = [reading.prefill.intensity, reading.decode.intensity, reading.decodeLimit].map(at);
  const share = (part) => percent(part / Math.max(has, weights + cache));
  return {
    slope: { x1: "0%", y1: percent(y(bandwidth * 10 ** x0)), x2: corner, y2: flat },
    flat: { x1: corner, y1: flat, x2: "100%", y2: flat },
    zone: { x: corner, width: percent(1 - x(ridge)) },
    "ridge-line": { x1: corner, x2: corner },
    "ridge-label": { x: corner, "text-anchor": x(ridge) < 0.36 ? "start" : x(ridge) > 0.7 ? "end" : "middle" },
    "memory-side": { x: corner, visibility: x(ridge) > 0.25 ? "visible" : "hidden" },
    "compute-side": { x: corner, visibility: x(ridge) < 0.66 ? "visible" : "hidden" },
    "prefill-drop": dropOf(prefill),
    "decode-drop": dropOf(decode),
    "limit-drop": dropOf(limit),
    "prefill-point": { x: percent(prefill[0]), y: percent(prefill[1]) },
    "decode-point": { cx: percent(decode[0]), cy: percent(decode[1]) },
    "limit-point": { cx: percent(limit[0]), cy: percent(limit[1]) },
    ...limitLabel(limit, prefill[0], decode[0], [x(ridge), y(rate)]),
    ...labelsOf(prefill, decode, x(ridge), y(rate)),
    room: { style: `--pd-weights:${share(weights)};--pd-cache:${share(cache)};--pd-has:${share(has)}` },
  };
}

function dropOf([x, y]) {
  return { x1: percent(x), y1: percent(y), x2: percent(x) };
}

/** Both names: to the right of a point on the slope, else above the flat roof and below it. */
function labelsOf(prefill, decode, ridge, flat) {
  const gap = (decode[1] - prefill[1]) * PLOT_HEIGHT;
  const [prefillHigh, decodeHigh] = [prefill, decode].map(([x]) => isHigh(x, ridge));
  const down = gap > -2 * LINE && !prefillHigh && !decodeHigh ? Math.max(0, Math.round(2 * LINE - gap)) : 0;
  return {
    ...(prefillHigh ? labelAt("prefill", prefill[0], flat, -27) : labelBeside("prefill", prefill, 8)),
    ...(decodeHigh ? labelAt("decode", decode[0], flat, 28) : labelBeside("decode", decode, 8 + down)),
  };
}

/** The limit's two lines: over the roof where it is free, else at the foot, on the side of more room. */
function limitLabel([x, y], prefill, decode, [ridge, flat]) {
  const end = Math.max(x, NARROW); // of the words: to the left of it they have room
  const slope = y + ((flat - y) * (end - x)) / (ridge - x || 1);
  const byName = isHigh(prefill, ridge) && end > over(prefill) - NARROW && (slope - flat) * PLOT_HEIGHT < NAME_FOOT;
  if (end <= ridge && !byName) return twoLines("limit", slope, -24, { x: percent(end), dx: "-9", "text-anchor": "end" });
  if (x > ridge && !isHigh(prefill, ridge)) return labelAt("limit", x, flat, -27);
  const lines = [0, prefill, decode, ridge, 1];
  const left = Math.min(...lines.filter((line) => line <= x).map((line) => x - line));
  const right = Math.min(...lines.filter((line) => line > x).map((line) => line - x));
  const anchor = x < NARROW || (left < right && x <= 1 - NARROW) ? "start" : "end";
  return twoLines("limit", 1, -24, { x: percent(x), dx: anchor === "end" ? "-5" : "5", "text-anchor": anchor });
}

function isHigh(x, ridge) {
  return x > ridge - 0.12;
}

/** Where a name over the flat roof has its middle: over its point as far as the picture is wide enough. */
function over(x) {
  return Math.max(0.3, Math.min(0.72, x));
}

function labelBeside(phase, [x, y], down) {
  return twoLines(phase, y, down, { x: percent(x), dx: "13", "text-anchor": "start" });
}

/** At the height of the flat roof, over its point as far as the picture is wide enough. */
function labelAt(phase, x, y, down) {
  return twoLines(phase, y, down, { x: percent(over(x)), dx: "0", "text-anchor": "middle" });
}

function twoLines(phase, y, down, where) {
  const line = (dy) => ({ ...where, y: percent(y), dy: String(dy) });
  return { [`${phase}-name`]: line(down), [`${phase}-at`]: line(down + LINE) };
}

/** A question: the choice that answers it, and the answer in its numbers. */
export function ask(name, data, now) {
  const plainly = { ...now, dtype: "float16" };
  const read = (choice) => readingOf(data, choice);
  return { short: askShort, ridge: askRidge, never: askNever, int4: askInt4, unfit: askUnfit }[name](data, plainly, read);
}

function askShort(data, now, read) {
  const choice = { ...now, prompt_len: 5, batch: 1 };
  const { prefill, ridge, tpotLeast } = read(choice);
  const start = `A prompt of 5 tokens: ${digits(prefill.intensity)} FLOP per byte in prefill, the ridge is ${digits(ridge)}.`;
  return { choice, answer: prefill.bound === "compute"
    ? `${start} This device computes so slowly for its memory that compute binds all the same.`
    : `${start} Memory binds prefill too: it reads all the weights for 5 tokens, so TTFT, ${duration(prefill.least)} at least,` +
      ` is about one TPOT, ${duration(tpotLeast)}.` };
}

function askRidge(data, now, read) {
  const alone = { ...now, batch: 1 };
  const { promptAtRidge: n, ridge } = read(alone);
  if (n === null) return { choice: alone, answer: `No prompt up to 131,072 tokens reaches the ridge of ${digits(ridge)} FLOP per byte.` };
  const choice = { ...alone, prompt_len: n };
  const { prefill } = read(choice);
  return { choice, answer:
    `A prompt of ${plural(n, "token")}: ${digits(prefill.intensity)} FLOP per byte, the ridge is ${digits(ridge)}.` +
    ` Arithmetic and reading take equally long, ${duration(prefill.least)} at least; a shorter prompt is hardly faster,` +
    " a longer one takes longer in proportion." };
}

function askNever(data, now, read) {
  const long = { ...now, prompt_len: 8192 };
  const choice = { ...long, batch: Math.max(1, Math.min(LARGEST.batch, read(long).largestBatch)) };
  const { decode, decodeLimit, ridge, batchAtRidge: batch } = read(choice);
  const start = `Decode of ${plural(choice.batch, "request")} at 8,192 tokens each: ${digits(decode.intensity)} FLOP per byte.`;
  const tends = `With the batch it tends to ${digits(decodeLimit)}`;
  return { choice, answer: batch === null
    ? `${start} ${tends}, below the ridge of ${digits(ridge)}: weights are shared, but every request brings a cache to read. No batch is compute-bound.`
    : `${start} ${tends}, above the ridge of ${digits(ridge)}: a batch of ${formatCount(batch)} gets there, if it fits.` };
}

function askInt4(data, now, read) {
  const choice = { ...now, dtype: "int4", prompt_len: 2048, batch: 1 };
  const [before, after] = [read({ ...choice, dtype: "float16" }), read(choice)];
  const change = (a, b) => (duration(a) === duration(b) ? `stays at ${duration(b)}` : `goes from ${duration(a)} to ${duration(b)}`);
  const why = ({ bound }) => (bound === "compute" ? "the arithmetic is still in 16 bits, and it binds" : "fewer bytes to read");
  return { choice, answer:
    `From 16 bits to int4 weights a token ${change(before.tpotLeast, after.tpotLeast)} at least: ${why(after.decode)}.` +
    ` Prefill of 2,048 tokens ${change(before.prefill.least, after.prefill.least)}: ${why(after.prefill)}.` +
    " The cache keeps its 16 bits, too." };
}

function askUnfit(data, now, read) {
  const choice = { ...now, prompt_len: 8192 };
  const { largestBatch, weights, memory: has } = read(choice);
  choice.batch = Math.min(LARGEST.batch, largestBatch + 1);
  const { fits, cache } = read(choice);
  const m = data.newTokens; // the last of them is chosen and never cached
  const asked = `${plural(choice.batch, "request")} of 8,192 tokens and ${m === 2 ? "1 more entry" : `${formatCount(m - 1)} more entries`} for ${formatCount(m)} new tokens`;
  const sizes = `weights ${short(weights, "B")} + cache ${short(cache, "B")}, the device has ${short(has, "B")}`;
  return { choice, answer: fits
    ? `Even ${asked} fit: ${sizes}.`
    : `${asked} do${choice.batch === 1 ? "es" : ""} not fit: ${sizes}. ` +
      `${largestBatch === 0 ? "Not even one does" : `${formatCount(largestBatch)} do`}: (memory − weights) / cache.` };
}

class RooflineView {
  constructor(root, model) {
    [this.root, this.model, this.abort] = [root, model, new AbortController()];
    this.data = model.get("data");
    this.collect();
    this.listen();
    this.fromModel();
  }

  destroy() {
    this.abort.abort();
    for (const name of CHOICES) this.model.off(`change:${name}`, this.follow);
  }

  collect() {
    const by = (attribute) => [...this.root.querySelectorAll(`[${attribute}]`)].map((element) => [element.getAttribute(attribute), element]);
    this.written = by("data-text");
    this.placed = by("data-place");
    this.inputs = [...this.root.querySelectorAll("select, input")];
    this.alert = this.root.querySelector(".pd-alert");
    this.sentence = this.root.querySelector(".pd-sentence");
    this.questions = [...this.root.querySelectorAll("[data-ask]")];
    this.places = { prompt_len: stops(LARGEST.prompt_len), batch: stops(LARGEST.batch) };
    for (const input of this.inputs) if (input.type === "range") input.max = this.places[input.name].length - 1;
  }

  listen() {
    const { signal } = this.abort;
    const on = (type, handler) => this.root.addEventListener(type, handler, { signal });
    on("input", ({ target }) => this.changed(target));
    on("click", ({ target }) => this.asked(target.closest("[data-ask]")));
    on("keydown", (event) => event.ctrlKey || event.altKey || event.metaKey || event.stopPropagation()); // JupyterLab would take them
    for (const type of ["change", "focusin", "focusout"]) on(type, ({ target }) => target.type === "number" && this.settle(target));
    this.follow = () => this.saving || this.fromModel();
    for (const name of CHOICES) this.model.on(`change:${name}`, this.follow);
  }

  fromModel() {
    this.write(this.alert, "");
    this.settled = this.choice = Object.fromEntries(CHOICES.map((name) => [name, this.model.get(name)]));
    this.show(this.choice);
  }

  /** A control has another value: show it, or say what is wrong with it and go back to what was before the typing. */
  changed(input) {
    const { name, type, value } = input;
    const kept = this.settled[name];
    const wrong = type === "number" ? complaint(name, value, kept) : "";
    input.setAttribute("aria-invalid", wrong !== "");
    this.write(this.alert, wrong);
    if (wrong && this.choice[name] === kept) return;
    const given = type === "range" ? this.places[name][Number(value)] : type === "number" ? Number(value) : value;
    this.choose({ ...this.choice, [name]: wrong ? kept : given }, "", input);
  }

  asked(button) {
    if (!button) return;
    const { choice, answer } = ask(button.dataset.ask, this.data, this.choice);
    this.write(this.alert, "");
    this.choose(choice, answer);
    for (const other of this.questions) other.setAttribute("aria-pressed", other === button);
  }

  choose(wanted, answer, input) {
    const choice = this.possible(wanted);
    const instead = choice.dtype === wanted.dtype ? "" : `${choice.device} has no rate in ${this.data.dtypes[wanted.dtype].label}: 16 bits instead. `;
    for (const button of this.questions) button.setAttribute("aria-pressed", "false");
    this.show(choice, input);
    if (answer || instead) this.write(this.sentence, instead + (answer || this.sentence.textContent));
    this.saving = true;
    for (const name of CHOICES) this.model.set(name, choice[name]);
    this.model.save_changes();
    this.saving = false;
  }

  /** The same choice in 16 bits, if the device has no rate in the dtype. */
  possible(choice) {
    const rate = this.data.dtypes[choice.dtype].rate;
    return rate in this.data.devices[choice.device].rates ? choice : { ...choice, dtype: "float16" };
  }

  show(choice, input = null) {
    this.choice = choice;
    const { data } = this;
    const reading = readingOf(data, choice);
    const [texts, places] = [textsOf(data, choice, reading), placesOf(data, reading)];
    this.setAttributes(this.root, attributesOf(choice, reading));
    for (const [name, element] of this.written) this.write(element, texts[name]);
    for (const [name, element] of this.placed) this.setAttributes(element, places[name]);
    this.root.toggleAttribute("data-unfit", !reading.fits);
    this.showInputs(input);
  }

  showInputs(except) {
    const { rates } = this.data.devices[this.choice.device];
    for (const input of this.inputs) {
      const value = this.choice[input.name];
      if (input.type === "range") {
        if (input !== except) input.value = nearestStop(value, this.places[input.name]);
        input.setAttribute("aria-valuetext", formatCount(value));
      } else if (input !== except) {
        input.value = value;
        if (input.type === "number") input.setAttribute("aria-invalid", "false");
      }
      if (input.name === "dtype") for (const option of input.options) option.disabled = !(this.data.dtypes[option.value].rate in rates);
    }
  }

  /** Typing begins or ends: the field shows the number that holds, and a wrong one will go back to it. */
  settle(input) {
    this.settled = this.choice;
    input.value = this.choice[input.name];
    input.setAttribute("aria-invalid", "false");
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
export default { render: drawn("roofline", RooflineView) };
