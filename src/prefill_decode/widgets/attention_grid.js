// The attention triangle of prefill and decode. Python computed every number; this module shows them.
// Pure functions come first, then the markup (the same as the static page's), then the view that steps through it.

const UNKNOWN_SCORE = -32768;
const ICONS = {
  first: "M3 3h2v10H3zM13 3v10L6 8z",
  previous: "M11 3v10L4 8z",
  play: "M4 2.5v11L13 8z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  next: "M5 3v10l7-5z",
  last: "M11 3h2v10h-2zM3 3v10l7-5z",
};
const CELLS_A_TASK = 250; // of a large triangle that is drawn while a model runs in the page
const COLUMNS = '<colgroup><col class="pd-col-phase"><col class="pd-col-pass"><col class="pd-col-label"></colgroup>';
const NOTHING_CHOSEN =
  "<p>Nothing is chosen from this row: the prompt says what comes next. Only its last row’s logits are needed.</p>";

/** Bytes as Python sends them, in base64, or as they are: the twin in the page has no text to squeeze them through. */
export function bytesOf(data) {
  return data instanceof Uint8Array ? data : Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
}

export function int16Of(base64) {
  const view = new DataView(bytesOf(base64).buffer);
  return Int16Array.from({ length: view.byteLength / 2 }, (_, i) => view.getInt16(2 * i, true));
}

export function pairsAt(step) {
  return (step * (step + 1)) / 2;
}

/** Where row q, key k of the head-th triangle of `steps` rows lies in the packed bytes. */
export function triangleIndex(head, q, k, steps) {
  return head * pairsAt(steps) + pairsAt(q) + k;
}

export function phaseAt(step, promptLen) {
  return step === 0 ? "idle" : step <= promptLen ? "prefill" : "decode";
}

export function passAt(step, promptLen) {
  return step === 0 ? 0 : Math.max(1, step - promptLen + 1);
}

/** The pairs of every pass when nothing is kept: the whole triangle, one row taller each time. */
export function passesWithoutCache(step, promptLen) {
  const first = Math.min(step, promptLen);
  return Array.from({ length: step - first + 1 }, (_, i) => pairsAt(first + i));
}

export function pairsWithoutCache(step, promptLen) {
  return passesWithoutCache(step, promptLen).reduce((sum, pairs) => sum + pairs, 0);
}

/** How often row q has been computed after `step` when nothing is kept. */
export function timesComputed(q, step, promptLen) {
  return q >= step ? 0 : step - Math.max(q + 1, Math.min(step, promptLen)) + 1;
}

export function stateOf(q, k, step, promptLen) {
  if (k > q) return "masked";
  if (q >= step) return "future";
  return q < promptLen ? "prefill" : "decode";
}

export function originOf(i, promptLen) {
  return i < promptLen ? "prompt" : "new";
}

export function chipState(i, step, promptLen) {
  if (i === step - 1) return "current";
  if (i < promptLen || i < step) return "known";
  return i === step ? "chosen" : "future";
}

export function sumOf(terms) {
  const shown = terms.map(formatCount);
  return (shown.length <= 3 ? shown : [shown[0], "…", shown.at(-1)]).join(" + ");
}

export function formatWeight(byte) {
  return (byte / 255).toFixed(2);
}

export function shadeOf(byte) {
  return Math.sqrt(byte / 255).toFixed(3); // the square root lets small weights be seen
}

export function formatScore(value, scores) {
  return (value * scores.step).toFixed(scores.decimals).replace("-", "−");
}

export function formatPermille(permille) {
  return `${Math.floor(permille / 10)}.${permille % 10} %`;
}

export function headName(phrase, layer, head) {
  const named = phrase.names.find((entry) => entry[0] === layer && entry[1] === head);
  if (named) return named[2];
  return phrase.sinks.includes(layer * phrase.heads.length + head) ? "sink" : "";
}

export function formatMeasure(byte, measure) {
  return ((byte / 255) * measure.max).toFixed(measure.decimals);
}

/** The head nearest to a point of the map, given as shares of its width and height. */
export function headAt(x, y, layers, heads) {
  const nearest = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
  return nearest(x, layers) * heads + nearest(y, heads);
}

/** What happens at a step, as HTML. */
export function sentenceAt(phrase, step, withoutCache = false) {
  const P = phrase.promptLen;
  if (step === 0) return `Nothing is computed yet: ${P} prompt token${P === 1 ? "" : "s"} and an empty cache.`;
  const query = tokenHtml(phrase.tokens[step - 1]);
  const soFar = (count) => `${formatCount(count)} pair${count === 1 ? "" : "s"} so far.`;
  const chosen = (words) => `${words} “${tokenHtml(phrase.tokens[step])}”`;
  const triangle = `${step}·${step + 1}/2 = ${soFar(pairsAt(step))}`;
  if (step > P && withoutCache) {
    return (
      `Without a cache, pass ${passAt(step, P)}: all ${step} rows are computed again${chosen("; the last row’s logits choose")}.` +
      ` ${sumOf(passesWithoutCache(step, P))} = ${soFar(pairsWithoutCache(step, P))}`
    );
  }
  if (step > P) {
    return (
      `Decode, pass ${passAt(step, P)}: one new query, “${query}”, reads ${step} keys, ${step - 1} of them from` +
      ` the cache${chosen("; its logits choose")}. ${step - 1}·${step}/2 + ${step} = ${soFar(pairsAt(step))}`
    );
  }
  const start = `Prefill, pass 1: all ${P} prompt rows are computed at once`;
  if (step < P) {
    const keys = `${step} key${step === 1 ? "" : "s"}`;
    return `${start}, shown one by one. Row ${step}, “${query}”, reads ${keys}. ${triangle}`;
  }
  return `${start}${chosen("; the last row’s logits choose")}. ${triangle}`;
}

/** The entries of an address hash that carry the prefix, without it. */
export function parseHash(hash, prefix = "") {
  const entries = [...new URLSearchParams(hash.replace(/^#/, ""))];
  const known = ["step", "layer", "head", "example"];
  return Object.fromEntries(known.flatMap((key) => entries.filter(([name]) => name === prefix + key).slice(-1)
    .map(([, value]) => [key, value])));
}

/** The hash with this grid's entries replaced and everybody else's kept. */
export function formatHash(hash, prefix, state) {
  const others = hash.replace(/^#/, "").split("&").filter((part) => {
    const [name] = part.split("=");
    return part.includes("=") && !Object.keys(state).some((key) => name === prefix + key);
  });
  const own = Object.entries(state).map(([key, value]) => `${prefix}${key}=${encodeURIComponent(value)}`);
  return "#" + (prefix ? [...others, ...own] : [...own, ...others]).join("&");
}

/** Milliseconds until the next row: prefill sweeps, since its rows belong to one pass; decode takes a beat a pass. */
export function delayAt(step, promptLen, steps) {
  const beat = Math.min(1100, Math.max(220, 14000 / steps));
  return step < promptLen && step > 0 ? beat / 3 : beat;
}

function tokenHtml(text) {
  return `<bdi>${escapeHtml(text)}</bdi>`;
}

function passHtml(number) {
  return `<span><span>pass </span>${number}</span>`;
}

function timesHtml(times) {
  return times ? `<span>×${times}</span>` : "";
}

function readoutHtml(phrase, weights, scores, q, k, words) {
  const index = pairsAt(q) + k;
  const score = scores ? scores[index] : UNKNOWN_SCORE;
  const known = score === UNKNOWN_SCORE ? "" : `score <b>${formatScore(score, phrase.scores)}</b>, `;
  return (
    `${words}query ${placeHtml(phrase, q)}, key ${placeHtml(phrase, k)}: ` +
    `${known}weight <b>${formatWeight(weights[index])}</b>`
  );
}

/** A token, with its position where another one is called the same. */
function placeHtml(phrase, i) {
  const text = phrase.tokens[i];
  const isSame = phrase.tokens.slice(0, phrase.known ?? phrase.steps).filter((other) => other === text).length > 1;
  return `“${tokenHtml(text)}”${isSame ? ` (${i})` : ""}`;
}

/** The widget's body, with the first `rows` rows of its triangle. */
function bodyHtml(phrases, phrase, rows) {
  return (
    `<div class="pd-tokens" role="list" aria-label="Tokens">${chipsHtml(phrase)}</div>` +
    `<div class="pd-main"><div class="pd-scroll">${tableHtml(phrase, rows)}</div>` +
    `<p class="pd-readout"></p>${noteHtml(phrase)}` +
    `<div class="pd-steps">${stepControlsHtml(phrase)}</div>` +
    `<p class="pd-sentence" aria-live="polite"></p>${askedHtml(phrase)}` +
    `<div class="pd-choices">${choicesHtml(phrases, phrase)}</div></div>` +
    `<div class="pd-ledger">${ledgerHtml(phrase)}</div>${headsHtml(phrase)}`
  );
}

function chipsHtml(phrase) {
  return phrase.tokens.map((text, i) =>
    `<span role="listitem" data-origin="${originOf(i, phrase.promptLen)}" data-chip="future">${tokenHtml(text)}</span>`).join(" ");
}

function askedHtml({ questions }) {
  const buttons = questions.map(({ ask }, i) => `<button type="button" data-ask="${i}">${escapeHtml(ask)}</button>`);
  return buttons.length > 0 ? `<div class="pd-questions"><span>Try:</span>${buttons.join("")}</div>` : "";
}

function noteHtml(phrase) {
  if (phrase.positions === phrase.steps) return "";
  return `<p class="pd-note">Shows the first ${phrase.steps} of ${phrase.positions} positions.</p>`;
}

function tableHtml(phrase, rows) {
  const split = Math.min(phrase.steps, phrase.promptLen);
  const columns = phrase.tokens.slice(0, phrase.steps)
    .map((text, k) => `<th scope="col" data-i="${k}" data-origin="${originOf(k, phrase.promptLen)}">${tokenHtml(text)}</th>`).join("");
  const decode = phrase.steps > split ? groupHtml(phrase, "decode", 0, rows - split) : "";
  return (
    `<table class="pd-table" style="--pd-n:${phrase.steps};--pd-p:${split};--pd-m:${phrase.steps - split}"><caption></caption>${COLUMNS}` +
    `<thead><tr><td class="pd-corner" colspan="3"><span>key →</span> <span>query ↓</span></td>${columns}</tr></thead>` +
    `${groupHtml(phrase, "prefill", 0, Math.min(rows, split))}${decode}</table>`
  );
}

function groupHtml(phrase, phase, from, to) {
  return `<tbody data-part="${phase}">${rowsHtml(phrase, phase, from, to)}</tbody>`;
}

/** Rows `from` to `to` of one phase, counted from its first. */
function rowsHtml(phrase, phase, from, to) {
  const split = Math.min(phrase.steps, phrase.promptLen);
  const [first, count, rest] = phase === "prefill" ? [0, split, " · one pass"] : [split, phrase.steps - split, " · one row a pass"];
  const rows = Array.from({ length: Math.max(0, to - from) }, (_, i) => {
    const isFirst = from + i === 0;
    const lead = isFirst ? `<th class="pd-phase" scope="rowgroup" rowspan="${count}"><span><b>${phase}</b><span>${rest}</span></span></th>` : "";
    return rowHtml(phrase, phase, first + from + i, lead + passCellHtml(phrase, phase, first + from + i, isFirst, count));
  });
  return rows.join("");
}

function passCellHtml(phrase, phase, q, isFirst, rows) {
  if (phase === "decode") return `<th class="pd-pass" scope="row">${passHtml(passAt(q + 1, phrase.promptLen))}</th>`;
  return isFirst ? `<th class="pd-pass" scope="rowgroup" rowspan="${rows}">${passHtml(1)}</th>` : "";
}

function rowHtml(phrase, phase, q, lead) {
  const cells = Array.from({ length: phrase.steps }, (_, k) => k > q
    ? `<td class="pd-masked" data-q="${q}" data-k="${k}" data-state="masked"></td>`
    : `<td data-q="${q}" data-k="${k}" data-state="future" tabindex="-1"> </td>`);
  return `<tr data-row="${q}" style="--pd-q:${q + 1}">${lead}<th class="pd-label" scope="row">${tokenHtml(phrase.tokens[q])}</th>${cells.join("")}</tr>`;
}

function stepControlsHtml(phrase) {
  return (
    `${buttonHtml("first", "First step")}${buttonHtml("previous", "Previous step")}` +
    `<button type="button" data-act="play">${iconHtml("play")}<span>Play</span></button>` +
    `${buttonHtml("next", "Next step")}${buttonHtml("last", "Last step")}` +
    `<input type="range" aria-label="Step" min="0" max="${phrase.steps}" step="1" value="${phrase.steps}" autocomplete="off">` +
    `<span class="pd-count" aria-hidden="true"></span>`
  );
}

function choicesHtml(phrases, phrase) {
  const labels = phrases.map((entry, i) => entry.label ?? `Phrase ${i + 1}`);
  return (
    (phrases.length > 1 ? selectHtml("Phrase", labels) : "") +
    `<label class="pd-check"><input type="checkbox" autocomplete="off"><span>Without a cache</span></label>` +
    `<div class="pd-pair">${selectHtml("Layer", phrase.layers)}${selectHtml("Head", phrase.heads)}</div>`
  );
}

function buttonHtml(act, name) {
  return `<button type="button" data-act="${act}" aria-label="${name}" title="${name}">${iconHtml(act)}</button>`;
}

function iconHtml(name) {
  return `<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${ICONS[name]}"></path></svg>`;
}

function selectHtml(name, labels) {
  return (
    `<label data-choice="${name.toLowerCase()}"><span aria-hidden="true">${name}</span>` +
    `<select aria-label="${name}" autocomplete="off">${optionsHtml(labels)}</select></label>`
  );
}

function optionsHtml(labels) {
  return labels.map((label, i) => `<option value="${i}">${escapeHtml(label)}</option>`).join("");
}

function ledgerHtml(phrase) {
  const each = phrase.kvBytes === null ? "" :
    `<p class="pd-small">${formatCount(phrase.kvBytes)} B a position${phrase.dtype ? ", " + escapeHtml(phrase.dtype) : ""}</p>`;
  return (
    cardHtml("pairs", "Query–key pairs, one head", lineHtml("with", "with a cache") + lineHtml("without", "without")) +
    cardHtml("cache", "KV cache, all layers",
      `<p class="pd-value"><b></b> <span></span></p>` +
      `<div class="pd-entries" style="--pd-n:${phrase.steps};--pd-a:0;--pd-b:0"></div>${each}`) +
    cardHtml("next", "Next token", `<div class="pd-next"${phrase.next ? " data-likely" : ""}></div>`)
  );
}

function cardHtml(name, title, body) {
  return `<div class="pd-card" data-card="${name}"><p class="pd-title">${title}</p>${body}</div>`;
}

function lineHtml(mode, what) {
  return (
    `<div class="pd-line" data-mode="${mode}"><b></b> <span class="pd-formula"></span> <span class="pd-what">${what}</span>` +
    `<div class="pd-meter"><span></span></div></div>`
  );
}

function headsHtml(phrase) {
  const [layers, heads] = [phrase.layers.length, phrase.heads.length];
  return (
    `<div class="pd-card pd-heads" data-card="heads">` +
    `<div class="pd-heads-top"><p class="pd-title">All ${layers * heads} heads</p>${measureHtml(phrase)}</div>` +
    `<div class="pd-plot" style="--pd-layers:${layers};--pd-heads:${heads}">${axisHtml("head", phrase.heads)}` +
    `<div class="pd-map" role="radiogroup" aria-label="Heads: layers from left to right, heads from top to bottom">${mapHtml(phrase)}</div>` +
    `${axisHtml("layer", phrase.layers)}</div>` +
    `<p class="pd-told"></p><div class="pd-named">${namedHtml(phrase)}</div></div>`
  );
}

function measureHtml(phrase) {
  if (phrase.measures.length === 0) return "";
  return (
    selectHtml("Measure", phrase.measures.map((measure) => measure.name)) +
    `<p class="pd-legend"><span>0</span><span class="pd-ramp"></span><span></span></p><p class="pd-meaning"></p>`
  );
}

function axisHtml(name, labels) {
  const last = labels.length > 1 ? tokenHtml(labels.at(-1)) : "";
  return `<div class="pd-axis" data-axis="${name}" aria-hidden="true">${tokenHtml(labels[0])}<span>${name}</span>${last}</div>`;
}

function namedHtml(phrase) {
  return phrase.names.map(([layer, head, text], i) =>
    `<button type="button" data-named="${i}" aria-pressed="false"><span>${escapeHtml(phrase.layers[layer])}/` +
    `${escapeHtml(phrase.heads[head])}</span> ${tokenHtml(text)}</button>`).join("");
}

function mapHtml(phrase) {
  const named = new Set(phrase.names.map(([layer, head]) => layer * phrase.heads.length + head));
  return Array.from({ length: phrase.layers.length * phrase.heads.length }, (_, i) =>
    `<button type="button" role="radio" aria-checked="false" tabindex="-1" data-head="${i}"${named.has(i) ? " data-is-named" : ""}></button>`).join("");
}

/** The options of the select "Head". */
function headLabels(phrase, layer) {
  return phrase.heads.map((label, h) => {
    const text = headName(phrase, layer, h);
    return text ? `${label} · ${text}` : label;
  });
}

/** What is said of head i, and its share of the range of the measure. */
function headWords(phrase, measure, byte, i) {
  const [layer, head] = [Math.floor(i / phrase.heads.length), i % phrase.heads.length];
  return {
    place: `layer ${phrase.layers[layer]}, head ${phrase.heads[head]}`,
    name: headName(phrase, layer, head),
    value: measure ? formatMeasure(byte, measure) : "",
    says: measure ? measure.says : "",
    share: (byte / 255).toFixed(3),
  };
}

/** The card "Next token" of a row that chooses one, empty: a step fills it in, which costs less than making it anew. */
function likelyHtml(lines) {
  const line = `<div class="pd-likely"><bdi></bdi><div class="pd-meter"><span></span></div><span></span></div>`;
  return `<p>This row’s logits choose <b><bdi></bdi></b></p>${line.repeat(lines)}`;
}

class GridView {
  constructor(root, model, hashPrefix) {
    this.root = root;
    this.model = model;
    this.hashPrefix = hashPrefix; // null where the address is not ours
    this.abort = new AbortController();
    this.hashWrites = [];
    this.written = new WeakMap(); // what each element was last given
    this.measure = 0;
    this.fromModel();
    if (hashPrefix !== null) this.fromHash();
    this.listen();
  }

  destroy() {
    this.pause();
    clearTimeout(this.growing);
    clearTimeout(this.hashTimer);
    this.abort.abort();
    for (const [event, handler] of this.modelHandlers) this.model.off?.(event, handler);
  }

  /** Take data and state from the model. */
  fromModel() {
    this.phrases = this.model.get("data").phrases;
    this.withoutCache = Boolean(this.model.get("without_cache"));
    this.openPhrase(this.model.get("phrase") ?? 0);
    this.apply({ step: this.model.get("step"), layer: this.model.get("layer"), head: this.model.get("head") });
  }

  fromHash() {
    const { example, ...state } = parseHash(location.hash, this.hashPrefix); // "phrase" is a reader's own text
    this.apply({ phrase: example, ...state });
  }

  /** Go to a state given by labels, as the address and the model hold it; what is unknown is left as it is. */
  apply({ phrase, step, layer, head }) {
    if (this.phrases[Number(phrase)] && Number(phrase) !== this.phraseIndex) this.openPhrase(Number(phrase));
    const [l, h] = [this.phrase.layers.indexOf(String(layer)), this.phrase.heads.indexOf(String(head))];
    this.showHead(l < 0 ? this.layer : l, h < 0 ? this.head : h);
    const wanted = Number.parseInt(step, 10);
    if (wanted >= 0) this.showStep(Math.min(wanted, this.phrase.steps));
  }

  /** Draw a phrase anew, finished, on the head it opens with. */
  openPhrase(index) {
    this.pause();
    this.phraseIndex = this.phrases[index] ? index : 0;
    const phrase = (this.phrase = this.phrases[this.phraseIndex]);
    this.bytes = bytesOf(phrase.weights);
    this.known = phrase.known ?? phrase.steps; // rows that have been computed: all, but in a run that goes on
    this.scores = phrase.scores && int16Of(phrase.scores.data);
    this.root.querySelectorAll(":scope > :not(script)").forEach((element) => element.remove());
    const rows = phrase.known ? Math.max(1, Math.floor(CELLS_A_TASK / 2 / phrase.steps)) : phrase.steps;
    this.root.insertAdjacentHTML("beforeend", bodyHtml(this.phrases, phrase, Math.min(rows, phrase.steps)));
    this.collect();
    this.setAttributes(this.root, {
      "data-steps": phrase.steps, "data-prompt-len": phrase.promptLen, "data-size": phrase.steps > 16 ? "large" : "small",
    });
    this.cells[0][0].tabIndex = 0;
    [this.step, this.layer, this.head, this.cell] = [0, null, null, null];
    if (this.choice.phrase) this.choice.phrase.value = this.phraseIndex;
    this.showMeasure(this.measure);
    this.showHead(...phrase.open);
    this.showStep(phrase.steps);
    clearTimeout(this.growing);
    this.grow();
  }

  /** Add the rows that are still left out, a few a task: the page answers while a large triangle is drawn. */
  grow() {
    const { phrase } = this;
    const [from, split] = [this.rows.length, Math.min(phrase.steps, phrase.promptLen)];
    if (from === phrase.steps) return;
    this.growing = setTimeout(() => {
      const to = Math.min(phrase.steps, from + Math.ceil(CELLS_A_TASK / phrase.steps));
      const [prefill, decode] = this.root.querySelectorAll("tbody");
      prefill.insertAdjacentHTML("beforeend", rowsHtml(phrase, "prefill", from, Math.min(to, split)));
      decode?.insertAdjacentHTML("beforeend", rowsHtml(phrase, "decode", Math.max(0, from - split), to - split));
      this.collect();
      for (let q = from; q < to; q += 1) {
        if (q < this.known) this.showRow(q);
        if (q < this.step) this.markRow(q, this.step);
      }
      this.markUnknown();
      this.rows[this.step - 1]?.setAttribute("aria-current", "step");
      this.showPasses();
      this.grow();
    }, 30); // longer than a frame, or two portions would be laid out in one
  }

  /** Look every element up once, so that a step touches only what changes. */
  collect() {
    const one = (selector) => this.root.querySelector(selector);
    const all = (selector) => [...this.root.querySelectorAll(selector)];
    this.rows = all("tr[data-row]");
    this.cells = this.rows.map((row) => [...row.querySelectorAll("td")]);
    this.labels = all(".pd-label");
    this.passes = all(".pd-pass");
    this.chips = all("[data-chip]");
    this.columns = all("th[data-i]");
    this.map = all("[data-head]");
    this.named = all("[data-named]");
    this.parts = Object.fromEntries(["scroll", "readout", "sentence", "count", "entries", "value", "next", "legend", "meaning", "told"]
      .map((name) => [name, one(`.pd-${name}`)]));
    this.caption = one("caption");
    this.prefillPart = one("tbody");
    this.range = one("input[type=range]");
    this.range.style.setProperty("--pd-share", Math.min(1, this.phrase.promptLen / this.phrase.steps));
    this.checkbox = one("input[type=checkbox]");
    this.playButton = one("[data-act=play]");
    this.lines = { with: one(".pd-line[data-mode=with]"), without: one(".pd-line[data-mode=without]") };
    this.choice = Object.fromEntries(all("[data-choice]").map((label) => [label.dataset.choice, label.querySelector("select")]));
  }

  /** Write the numbers of one head into the cells. */
  showHead(layer, head) {
    if (layer === this.layer && head === this.head) return;
    const { phrase } = this;
    const start = triangleIndex(layer * phrase.heads.length + head, 0, 0, phrase.steps);
    this.weights = this.bytes.subarray(start, start + pairsAt(phrase.steps));
    const sent = phrase.scores ? phrase.scores.heads.findIndex(([l, h]) => l === layer && h === head) : -1;
    this.headScores = sent < 0 ? null : this.scores.subarray(sent * pairsAt(phrase.steps), (sent + 1) * pairsAt(phrase.steps));
    for (let q = 0; q < Math.min(this.known, this.rows.length); q += 1) this.showRow(q);
    this.showChoice(layer, head);
    this.showReadout();
  }

  /** Write the numbers of the head that is shown into one row. */
  showRow(q) {
    this.cells[q].slice(0, q + 1).forEach((cell, k) => {
      const byte = this.weights[pairsAt(q) + k];
      cell.style.setProperty("--pd-s", shadeOf(byte));
      cell.firstChild.data = formatWeight(byte);
    });
  }

  /** Take a row that has just been computed: its bytes in all heads, the token it chose, what is measured anew. */
  addRow({ q, bytes, token, next, names, measures, sinks }) {
    const { phrase } = this;
    const follows = this.step === this.known;
    for (let head = 0; head * (q + 1) < bytes.length; head += 1) {
      this.bytes.set(bytes.subarray(head * (q + 1), (head + 1) * (q + 1)), triangleIndex(head, q, 0, phrase.steps));
    }
    Object.assign(phrase, { known: q + 1, names, measures, sinks });
    phrase.tokens[q + 1] = token;
    phrase.next[q] = next;
    this.known = q + 1;
    for (const named of [this.chips[q + 1], this.columns[q + 1], this.labels[q + 1]]) {
      if (named) named.querySelector("bdi").firstChild.data = token;
    }
    if (this.rows[q]) this.showRow(q);
    this.showMeasure(this.measure);
    this.showNames();
    if (follows) this.showStep(this.known);
  }

  /** Name the heads that lead a measure anew. Texts are written into nodes that stand: new ones have all laid out. */
  showNames() {
    const { layers, heads, names } = this.phrase;
    const list = this.root.querySelector(".pd-named");
    if (list.children.length !== names.length) list.innerHTML = namedHtml(this.phrase);
    this.named = [...list.children];
    this.named.forEach((button, i) => {
      const [layer, head, text] = names[i];
      button.querySelector("span").firstChild.data = `${layers[layer]}/${heads[head]}`;
      button.querySelector("bdi").firstChild.data = text;
    });
    this.map.forEach((button, i) => button.toggleAttribute("data-is-named", names.some(([l, h]) => l * heads.length + h === i)));
    headLabels(this.phrase, this.layer).forEach((label, h) => { this.choice.head.options[h].text = label; });
    this.showChoice(this.layer, this.head);
  }

  /** Colour the map by one measure of all heads; a phrase of a single row has none. */
  showMeasure(index) {
    const { phrase, parts } = this;
    const measure = phrase.measures[index];
    const bytes = measure ? bytesOf(measure.data) : new Uint8Array(this.map.length);
    this.heads = Array.from(bytes, (byte, i) => headWords(phrase, measure, byte, i));
    this.map.forEach((button, i) => {
      const { place, name, value, says, share } = this.heads[i];
      const words = [name, says && `${value} ${says}`].filter(Boolean).join(", ");
      button.setAttribute("aria-label", words ? `${place}: ${words}` : place);
      button.style.setProperty("--pd-s", share);
    });
    if (!measure) return;
    this.measure = index;
    this.choice.measure.value = index;
    parts.legend.lastChild.textContent = measure.top;
    parts.meaning.textContent = measure.meaning;
  }

  /** Say the head under the pointer or focus, else the chosen one. */
  showTold(button) {
    const { place, name, value, says } = this.heads[button ? button.dataset.head : this.layer * this.phrase.heads.length + this.head];
    const measured = says ? `: <b>${value}</b> ${says}` : "";
    this.setHtml(this.parts.told, escapeHtml(place) + measured + (name ? ` · ${tokenHtml(name)}` : ""));
  }

  showChoice(layer, head) {
    const { phrase } = this;
    const name = headName(phrase, layer, head);
    if (layer !== this.layer) this.choice.head.innerHTML = optionsHtml(headLabels(phrase, layer));
    const before = this.map[this.layer * phrase.heads.length + this.head];
    if (before) this.setAttributes(before, { "aria-checked": "false", tabindex: "-1" });
    this.setAttributes(this.map[layer * phrase.heads.length + head], { "aria-checked": "true", tabindex: "0" });
    this.named.forEach((button, i) => {
      const [namedLayer, namedHead] = phrase.names[i];
      button.setAttribute("aria-pressed", namedLayer === layer && namedHead === head);
    });
    [this.layer, this.head] = [layer, head];
    [this.choice.layer.value, this.choice.head.value] = [layer, head];
    this.caption.innerHTML =
      `Attention weights, layer ${escapeHtml(phrase.layers[layer])}, head ${escapeHtml(phrase.heads[head])}` +
      (name ? ` · ${tokenHtml(name)}` : "");
    this.showTold(null);
  }

  /** Reveal rows up to a step, or take them back. */
  showStep(wanted) {
    const { promptLen } = this.phrase;
    const step = Math.min(wanted, this.known);
    this.rows[this.step - 1]?.removeAttribute("aria-current");
    const last = Math.min(this.rows.length, Math.max(step, this.step));
    for (let q = Math.min(step, this.step); q < last; q += 1) this.markRow(q, step);
    this.step = step;
    this.rows[step - 1]?.setAttribute("aria-current", "step");
    this.chips.forEach((chip, i) => this.setAttributes(chip, { "data-chip": chipState(i, step, promptLen) }));
    this.markUnknown();
    this.showCounts();
    this.showReadout();
  }

  markRow(q, step) {
    const state = stateOf(q, 0, step, this.phrase.promptLen);
    for (let k = 0; k <= q; k += 1) this.cells[q][k].dataset.state = state;
    this.rows[q].toggleAttribute("data-shown", q < step);
  }

  markUnknown() {
    for (let i = this.phrase.promptLen; i < this.phrase.steps; i += 1) {
      this.columns[i].toggleAttribute("data-unknown", i > this.step);
      this.labels[i]?.toggleAttribute("data-unknown", i > this.step);
    }
  }

  /** Everything that follows from the step and from "Without a cache". */
  showCounts() {
    const { phrase, step, withoutCache, parts } = this;
    const { promptLen } = phrase;
    const [pairs, pairsWithout] = [pairsAt(step), pairsWithoutCache(step, promptLen)];
    const entries = withoutCache ? 0 : step;
    this.setAttributes(this.root, {
      "data-step": step, "data-phase": phaseAt(step, promptLen), "data-pairs": withoutCache ? pairsWithout : pairs, "data-cache": entries,
    });
    this.root.toggleAttribute("data-without-cache", withoutCache);
    // Marks of their own, since a change of data-phase would have every cell's style computed again.
    this.root.toggleAttribute("data-recomputing", withoutCache && step > promptLen);
    this.prefillPart.toggleAttribute("data-computed", step > 0);
    this.range.value = step;
    this.range.style.setProperty("--pd-at", step / phrase.steps);
    this.range.setAttribute("aria-valuetext", `${step} of ${phrase.steps}`);
    this.checkbox.checked = withoutCache;
    parts.count.textContent = `${step} / ${phrase.steps}`;
    parts.sentence.innerHTML = this.answering ? escapeHtml(this.answering) : sentenceAt(phrase, step, withoutCache);
    markAsked(this, null);
    this.showNext();
    this.showPasses();
    const most = pairsWithoutCache(phrase.steps, promptLen);
    const triangle = `= ${step}·${step + 1}/2`;
    this.showLine("with", pairs, triangle, pairs / most);
    this.showLine("without", pairsWithout, step > promptLen ? `= ${sumOf(passesWithoutCache(step, promptLen))}` : triangle, pairsWithout / most);
    this.showEntries(entries);
  }

  showNext() {
    const { phrase, step } = this;
    const { next } = this.parts;
    if (step === 0) return this.setHtml(next, "<p>Nothing is chosen yet.</p>");
    if (step < phrase.promptLen) return this.setHtml(next, NOTHING_CHOSEN);
    const [chosen, likely] = [phrase.tokens[step], phrase.next ? phrase.next[step - 1] : []];
    this.setHtml(next, likelyHtml(likely.length));
    const [first, ...lines] = next.children;
    first.querySelector("bdi").textContent = chosen;
    return lines.forEach((line, i) => {
      const [text, permille] = likely[i];
      const [token, meter, share] = line.children;
      token.textContent = text;
      meter.firstChild.style.setProperty("--pd-v", (permille / 1000).toFixed(3));
      share.textContent = formatPermille(permille);
      line.toggleAttribute("data-chosen", text === chosen);
    });
  }

  showPasses() {
    const { promptLen, steps } = this.phrase;
    const split = Math.min(promptLen, steps);
    this.passes.forEach((cell, i) => {
      const q = i === 0 ? 0 : split + i - 1;
      this.setHtml(cell, this.withoutCache ? timesHtml(timesComputed(q, this.step, promptLen)) : passHtml(i + 1));
      cell.toggleAttribute("data-todo", i > 0 && q >= this.step);
    });
  }

  showLine(mode, value, formula, share) {
    const [count, text, , meter] = this.lines[mode].children;
    count.textContent = formatCount(value);
    text.textContent = formula;
    meter.firstChild.style.setProperty("--pd-v", share.toFixed(4));
  }

  showEntries(entries) {
    const { kvBytes, promptLen } = this.phrase;
    const first = Math.min(entries, promptLen);
    this.parts.entries.style.setProperty("--pd-a", first);
    this.parts.entries.style.setProperty("--pd-b", entries - first);
    const [count, unit] = this.parts.value.children;
    count.textContent = entries;
    unit.textContent = (entries === 1 ? "entry" : "entries") + (kvBytes === null ? "" : ` · ${formatCount(kvBytes * entries)} B`);
  }

  /** Say the cell under the pointer or focus, else the largest one of the row being computed. */
  showReadout() {
    const { phrase, step, weights, headScores, parts } = this;
    if (this.cell && this.cell.q < step) {
      parts.readout.innerHTML = readoutHtml(phrase, weights, headScores, this.cell.q, this.cell.k, "");
    } else if (step > 0) {
      const row = weights.subarray(pairsAt(step - 1), pairsAt(step));
      const k = row.indexOf(Math.max(...row));
      parts.readout.innerHTML = readoutHtml(phrase, weights, headScores, step - 1, k, "Largest in this row: ");
    } else {
      parts.readout.innerHTML = "Every row is one query; every cell in it, one key it may read.";
    }
  }

  pointAt(element) {
    const cell = element?.closest?.("td[data-q]") ?? this.root.querySelector("td[data-q]:focus");
    const [q, k] = cell ? [Number(cell.dataset.q), Number(cell.dataset.k)] : [-1, -1];
    if (this.cell) [this.columns[this.cell.k], this.labels[this.cell.q]].forEach((header) => header.removeAttribute("data-hot"));
    this.cell = k <= q && q >= 0 ? { q, k } : null;
    if (this.cell) {
      [this.columns[k], this.labels[q]].forEach((header) => header.setAttribute("data-hot", ""));
    }
    this.showReadout();
    this.showTold(element?.closest?.("[data-head]"));
  }

  listen() {
    const { signal } = this.abort;
    const on = (type, handler) => this.root.addEventListener(type, handler, { signal });
    on("click", (event) => this.clicked(event.target.closest("button, td[data-q]") ?? this.nearestHead(event)));
    on("input", (event) => event.target === this.range && this.userStep(Number(this.range.value)));
    on("change", (event) => this.chosen(event.target));
    on("keydown", (event) => this.pressed(event));
    on("pointerover", (event) => this.pointAt(event.target));
    on("pointerleave", () => this.pointAt(null));
    on("focusin", (event) => this.pointAt(event.target));
    window.addEventListener("beforeprint", () => this.beforePrint(), { signal });
    window.addEventListener("afterprint", () => this.showStep(this.stepBeforePrint ?? this.step), { signal });
    if (this.hashPrefix !== null) window.addEventListener("hashchange", () => this.fromHash(), { signal });
    this.listenToModel();
  }

  listenToModel() {
    const follow = () => this.saving || this.apply({
      phrase: this.model.get("phrase"), step: this.model.get("step"), layer: this.model.get("layer"), head: this.model.get("head"),
    });
    const mode = () => {
      if (this.saving) return;
      this.withoutCache = Boolean(this.model.get("without_cache"));
      this.showCounts();
    };
    this.modelHandlers = [["change:data", () => this.fromModel()], ["change:without_cache", mode],
      ["change:row", () => this.addRow(this.model.get("row"))],
      ...["phrase", "step", "layer", "head"].map((name) => [`change:${name}`, follow])];
    for (const [event, handler] of this.modelHandlers) this.model.on(event, handler);
  }

  clicked(target) {
    if (!target) return;
    const { act, ask, named, head } = target.dataset;
    if (act) this.act(act);
    else if (ask) this.answer(this.phrase.questions[ask], target);
    else if (named) this.userHead(...this.phrase.names[Number(named)].slice(0, 2));
    else if (head) this.userHead(Math.floor(head / this.phrase.heads.length), head % this.phrase.heads.length);
    else this.focusCell(target);
  }

  /** Show what a question is about, and say the answer in place of the step's sentence. */
  answer({ answer, layer, head, step, withoutCache }, button) {
    this.withoutCache = withoutCache;
    this.answering = answer; // said once, in place of the step's sentence
    this.showHead(layer, head);
    this.userStep(step);
    this.answering = null;
    markAsked(this, button);
  }

  /** A finger that just misses the map means the head nearest to it. */
  nearestHead({ target, clientX, clientY }) {
    if (!target.closest(".pd-plot")) return null;
    const { left, top, width, height } = this.map[0].parentElement.getBoundingClientRect();
    const { layers, heads } = this.phrase;
    return this.map[headAt((clientX - left) / width, (clientY - top) / height, layers.length, heads.length)];
  }

  act(name) {
    const { steps } = this.phrase;
    if (name === "play") return this.playing ? this.pause() : this.play();
    const steppedTo = { first: 0, previous: Math.max(0, this.step - 1), next: Math.min(steps, this.step + 1), last: steps };
    return this.userStep(steppedTo[name]);
  }

  chosen(target) {
    const value = Number(target.value);
    if (target === this.checkbox) {
      this.withoutCache = target.checked;
      this.showCounts();
      this.save();
    } else if (target === this.choice.phrase) {
      this.openPhrase(value);
      this.choice.phrase.focus();
      this.save();
    } else if (target === this.choice.measure) {
      this.showMeasure(value);
      this.showTold(null);
    } else if (target === this.choice.layer) this.userHead(value, this.head);
    else if (target === this.choice.head) this.userHead(this.layer, value);
  }

  pressed(event) {
    const { target, key } = event;
    // JupyterLab's own shortcuts would cut the cell or leave it
    if (this.hashPrefix === null && !event.ctrlKey && !event.altKey && !event.metaKey) event.stopPropagation();
    if (event.ctrlKey || event.altKey || event.metaKey || target.tagName === "SELECT") return;
    if (key === " " && (target.tagName === "BUTTON" || target === this.checkbox)) return;
    const arrow = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[key];
    if (arrow && target.dataset.head) this.moveOnMap(...arrow);
    else if (arrow && event.shiftKey && target.dataset.q) this.moveCell(target, ...arrow);
    else if (event.shiftKey) return;
    else {
      const wanted = stepForKey(key, this.step, this.phrase.steps, true);
      if (wanted === null) return;
      if (wanted === "play") this.act("play");
      else this.userStep(wanted);
    }
    event.preventDefault();
  }

  moveOnMap(down, right) {
    const layer = this.layer + right;
    const head = this.head + down;
    if (!this.phrase.layers[layer] || !this.phrase.heads[head]) return;
    this.userHead(layer, head);
    this.map[layer * this.phrase.heads.length + head].focus();
  }

  moveCell(cell, down, right) {
    const next = this.cells[Number(cell.dataset.q) + down]?.[Number(cell.dataset.k) + right];
    if (next) this.focusCell(next);
  }

  focusCell(cell) {
    if (Number(cell.dataset.k) > Number(cell.dataset.q)) return;
    this.root.querySelector("td[tabindex='0']").tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  }

  userStep(step) {
    this.pause();
    this.showStep(step);
    this.save();
  }

  userHead(layer, head) {
    this.showHead(layer, head);
    this.save();
  }

  play() {
    this.playing = true;
    this.showPlaying();
    if (this.step === this.known) {
      this.showStep(0);
      this.save();
    }
    this.playOn();
  }

  playOn() {
    this.timer = setTimeout(() => {
      this.showStep(this.step + 1);
      this.save();
      if (this.step === this.known) this.pause();
      else this.playOn();
    }, delayAt(this.step, this.phrase.promptLen, this.phrase.steps));
  }

  pause() {
    clearTimeout(this.timer);
    if (!this.playing) return;
    this.playing = false;
    this.showPlaying();
  }

  showPlaying() {
    this.playButton.innerHTML = `${iconHtml(this.playing ? "pause" : "play")}<span>${this.playing ? "Pause" : "Play"}</span>`;
  }

  beforePrint() {
    this.pause();
    this.stepBeforePrint = this.step;
    this.showStep(this.phrase.steps);
  }

  /** Tell the model, and the address if it is ours. */
  save() {
    const { phrase, model } = this;
    const state = { phrase: this.phraseIndex, step: this.step, layer: phrase.layers[this.layer], head: phrase.heads[this.head] };
    this.saving = true;
    Object.entries(state).forEach(([name, value]) => model.set(name, value));
    model.set("without_cache", this.withoutCache);
    model.save_changes();
    this.saving = false;
    if (this.hashPrefix !== null) this.saveHash(state);
  }

  /** Browsers refuse more than some 100 address changes in 30 seconds; the last one of a burst is what matters. */
  saveHash({ phrase, step, layer, head }) {
    clearTimeout(this.hashTimer);
    const now = performance.now();
    this.hashWrites = this.hashWrites.filter((time) => now - time < 30000);
    const write = () => {
      const state = { step, layer, head, ...(this.phrases.length > 1 ? { example: phrase } : {}) };
      this.hashWrites.push(performance.now());
      history.replaceState(history.state, "", formatHash(location.hash, this.hashPrefix, state));
    };
    if (this.hashWrites.length < 60) write();
    else this.hashTimer = setTimeout(write, 600);
  }

  setHtml(element, html) {
    if (this.written.get(element) === html) return;
    this.written.set(element, html);
    element.innerHTML = html;
  }

  setAttributes(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
    }
  }
}

function mount(el) {
  const root = el.appendChild(document.createElement("div"));
  root.dataset.widget = "attention-grid";
  root.className = "pd-grid tex2jax_ignore mathjax_ignore";
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Attention of one head, row by row");
  return root;
}

function prefixOf(root) {
  const place = [...document.querySelectorAll('[data-widget="attention-grid"]')].indexOf(root);
  return place > 0 ? `g${place + 1}.` : "";
}

function render({ model, el }) {
  const onPage = el.matches('[data-widget="attention-grid"]');
  const root = onPage ? el : mount(el);
  root.tabIndex = 0;
  const view = new GridView(root, model, onPage ? prefixOf(root) : null);
  root.setAttribute("data-live", "");
  return () => view.destroy();
}

export default { render };
