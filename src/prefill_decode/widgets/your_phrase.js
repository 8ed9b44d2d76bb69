// A phrase of the reader's own in the plain page. The model runs in a worker (twin/); this module asks it, measures
// nothing itself, and shows what comes: a grid that grows by a row a pass, and the time of every pass.

const MARKUP = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
const STORE = "prefill-decode"; // the same as the worker's
const MODES = { kept: "with a cache", recomputed: "without a cache" };

function escapeHtml(text) {
  return text.replace(/[&<>]/g, (character) => MARKUP[character]);
}

export function formatCount(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function formatMs(milliseconds) {
  return milliseconds < 1000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(2)} s`;
}

/** Query–key pairs of a pass, one head: its rows are the last of the keys. */
export function pairsOf({ nQueries, nKeys }) {
  return nQueries * (nKeys - nQueries) + (nQueries * (nQueries + 1)) / 2;
}

/** Time to the first token and mean time of each later one; of a single token there is no later one. */
export function timesOf(passes) {
  const later = passes.slice(1).map((pass) => pass.milliseconds);
  return {
    ttft: passes[0]?.milliseconds ?? null,
    tpot: later.length ? later.reduce((a, b) => a + b, 0) / later.length : null,
  };
}

/** What a run took, in a sentence. */
export function sentenceOf(passes, mode) {
  const { ttft, tpot } = timesOf(passes);
  const rows = passes.reduce((sum, pass) => sum + pass.nQueries, 0);
  const pairs = passes.reduce((sum, pass) => sum + pairsOf(pass), 0);
  const each = tpot === null ? "" : `, then ${formatMs(tpot)} a token (TPOT)`;
  return (
    `${MODES[mode]}: ${formatMs(ttft)} to the first token (TTFT)${each}; ` +
    `${formatCount(rows)} row${rows === 1 ? "" : "s"}, ${formatCount(pairs)} pair${pairs === 1 ? "" : "s"} a head`
  );
}

/** The address of a run: what others keep in it stays. */
export function hashWith(hash, phrase, newTokens) {
  const others = hash.replace(/^#/, "").split("&").filter((part) => /^(?!phrase=|new=)[^=]+=/.test(part));
  return `#${[`phrase=${encodeURIComponent(phrase)}`, `new=${newTokens}`, ...others].join("&")}`;
}

export function runOfHash(hash) {
  const entries = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  return { phrase: entries.get("phrase"), newTokens: entries.get("new") };
}

/** Half a surrogate pair, which no address and no UTF-8 text can hold, counts as U+FFFD. */
export function wellFormed(text) {
  return text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
}

function barHtml(pass, most, mode) {
  if (!pass) return `<td data-mode="${mode}"></td>`;
  const phase = pass.phase === "full" ? "recomputed" : pass.phase;
  return (
    `<td data-mode="${mode}" data-phase="${phase}"><span class="pd-bar" style="--pd-v:${(pass.milliseconds / most).toFixed(3)}"></span>` +
    `<span>${formatMs(pass.milliseconds)}</span> <small>${pass.nQueries} row${pass.nQueries === 1 ? "" : "s"}</small></td>`
  );
}

/** Every pass with its time, both ways of running side by side if the reader has tried both. */
export function passesHtml(runs) {
  const modes = Object.keys(MODES).filter((mode) => runs[mode]);
  const most = Math.max(...modes.flatMap((mode) => runs[mode].map((pass) => pass.milliseconds)));
  const count = Math.max(...modes.map((mode) => runs[mode].length));
  const rows = Array.from({ length: count }, (_, i) =>
    `<tr><th scope="row">${i + 1}</th>${modes.map((mode) => barHtml(runs[mode][i], most, mode)).join("")}</tr>`);
  return (
    `<table class="pd-passes"><caption>Time of each pass, measured in this browser just now</caption>` +
    `<thead><tr><th scope="col">pass</th>${modes.map((mode) => `<th scope="col">${MODES[mode]}</th>`).join("")}</tr></thead>` +
    `<tbody>${rows.join("")}</tbody></table>`
  );
}

class PhraseView {
  constructor(root, model, { widgets, modelFrom, twin }) {
    Object.assign(this, { root, widgets, modelFrom, twin });
    this.limits = Object.fromEntries(["file", "size", "sha256", "maxPrompt", "maxNew"].map((name) => [name, model.get(name)]));
    const one = (selector) => root.querySelector(selector);
    this.parts = { controls: one(".pd-controls"), note: one(".pd-note"), progress: one("progress"), status: one(".pd-status"), result: one(".pd-result"), file: one(".pd-file") };
    this.fields = { phrase: one("textarea"), newTokens: one("[name=new]"), recompute: one("[name=recompute]"), file: one("[type=file]") };
    this.loaded = false;
    this.ran = { phrase: null, newTokens: null, runs: {} }; // the passes of the last phrase, by mode
    this.url = root.dataset.model && location.protocol !== "file:" ? new URL(root.dataset.model, document.baseURI).href : null;
    this.fromHash();
    this.listen();
    this.parts.controls.hidden = false;
    this.parts.note.hidden = true;
    this.parts.file.hidden = this.url !== null;
    this.show("idle", this.invitation());
  }

  /** What may be loaded, and from where; said before anything is. */
  invitation() {
    const size = `${(this.limits.size / 1e6).toFixed(0)} MB`;
    if (this.url) return `${size} from ${new URL(this.url).host}. Nothing is loaded yet.`;
    if (location.protocol === "file:") return `Opened from the disk, a page may not fetch: choose ${this.limits.file} in the folder “model” of this book.`;
    return `This copy of the book comes without the model (built with MODEL=0): choose the file ${this.limits.file}, or use the prepared phrases.`;
  }

  listen() {
    this.root.addEventListener("click", (event) => {
      const act = event.target.closest(".pd-acts [data-act]")?.dataset.act; // the grid has acts of its own
      if (act) this[act]();
    });
    this.fields.file.addEventListener("change", () => this.fields.file.files[0] && this.open(this.fields.file.files[0]));
    this.root.addEventListener("keydown", (event) => {
      // Enter belongs to the text, which may have several lines
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
      if (event.target.matches("textarea, input")) event.stopPropagation();
    });
    window.addEventListener("hashchange", () => this.fromHash());
  }

  fromHash() {
    const { phrase, newTokens } = runOfHash(location.hash);
    if (phrase !== null) this.fields.phrase.value = phrase;
    if (/^\d+$/.test(newTokens ?? "")) this.fields.newTokens.value = newTokens;
  }

  show(state, line) {
    this.root.dataset.state = state;
    this.parts.status.textContent = line;
    this.parts.status.toggleAttribute("data-refused", state === "error");
    const busy = state === "loading" || state === "running";
    const idle = { load: busy || this.loaded, run: busy || !this.loaded, stop: !busy };
    for (const [act, off] of Object.entries(idle)) this.root.querySelector(`[data-act=${act}]`).setAttribute("aria-disabled", off);
    this.parts.progress.hidden = !busy;
  }

  /** Start the worker once; a browser without workers says so. */
  ask(message, transfer) {
    try {
      this.worker ??= this.start();
      this.worker.postMessage(message, transfer);
      return true;
    } catch (error) {
      this.show("error", `This browser cannot run the model here (${error.message}): try a current Firefox, Chrome or Safari.`);
      return false;
    }
  }

  start() {
    const worker = new Worker(URL.createObjectURL(new Blob([this.twin], { type: "text/javascript" })));
    worker.onmessage = ({ data }) => this[`on_${data.type}`](data);
    worker.onerror = (event) => this.crashed(event.message);
    return worker;
  }

  /** A worker that broke is given up: the next load starts another one. */
  crashed(message) {
    this.worker.terminate();
    [this.worker, this.loaded] = [null, false];
    this.on_error({ line: `the model stopped (${message || "no reason given"}): load it again` });
  }

  load() {
    if (this.loaded) return this.tell("The model is loaded: press Run.");
    if (this.isBusy()) return this.tell("Still loading: Stop ends it.");
    if (!this.url) return this.tell(this.invitation());
    this.begin("loading", "Loading …", { type: "load", url: this.url });
  }

  open(file) {
    if (!this.isBusy()) this.begin("loading", `Reading ${file.name} …`, { type: "open", file });
  }

  run() {
    if (this.root.dataset.state === "running") return this.tell("Still running, one phrase at a time: Stop ends it.");
    if (!this.loaded) return this.tell(this.isBusy() ? "The model is still loading." : "Load the model first.");
    const { phrase, newTokens, recompute } = this.fields;
    const asked = { phrase: wellFormed(phrase.value), newTokens: newTokens.valueAsNumber, useCache: !recompute.checked };
    this.mode = asked.useCache ? "kept" : "recomputed";
    this.asked = asked;
    this.passes = [];
    this.begin("running", "Prefill: all rows of the phrase in one pass …", { type: "run", ...asked });
  }

  begin(state, line, message) {
    const { sha256, size, maxPrompt, maxNew } = this.limits;
    this.parts.progress.removeAttribute("value");
    this.show(state, line);
    this.ask({ sha256, size, maxPrompt, maxNew, ...message });
  }

  stop() {
    if (this.isBusy()) this.worker.postMessage({ type: "stop" });
    else this.tell("Nothing is running.");
  }

  isBusy() {
    return ["loading", "running"].includes(this.root.dataset.state);
  }

  tell(line) {
    this.parts.status.textContent = line;
  }

  // --- what the worker answers

  on_progress({ loaded }) {
    const { size } = this.limits;
    this.parts.progress.value = loaded / size;
    const all = (size / 1e6).toFixed(0);
    this.tell(loaded < size ? `Loaded ${(loaded / 1e6).toFixed(0)} of ${all} MB` : `${all} MB are here: checking them …`);
  }

  /** From now on this page opens without a network, too; a browser that refuses keeps the model only. */
  async keepPage() {
    const store = await caches.open(STORE);
    const loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
    const own = [location.href.split("#")[0], ...loaded].filter((url) => url.startsWith(location.origin) && !url.endsWith(".gguf"));
    await Promise.allSettled([...new Set(own)].map((url) => store.add(url)));
    await navigator.serviceWorker.register(new URL("../offline.js", this.url));
  }

  on_ready({ kept, fromStore }) {
    if (kept) this.keepPage().catch(() => {});
    this.loaded = true;
    this.parts.file.hidden = true;
    const where = fromStore ? "from this browser’s store" : kept ? "and kept for the next visit" : "but not kept: this browser has no room for it here";
    this.show("ready", `The model is ready, ${where}. Press Run.`);
  }

  on_pass({ pass, ids, text, phrase, row }) {
    this.passes.push(pass);
    const prompt = this.asked.promptLen ??= ids.length - 1;
    if (this.passes.length === 1) this.firstPass(ids.slice(0, prompt), phrase);
    else this.grid.set("row", row);
    Object.assign(this.root.dataset, { generatedIds: ids.slice(prompt).join(" "), ...this.times() });
    const { newTokens } = this.asked;
    this.parts.progress.value = this.passes.length / newTokens;
    this.tell(`Pass ${this.passes.length} of ${newTokens}: ${pass.nQueries} row${pass.nQueries === 1 ? "" : "s"}, ${formatMs(pass.milliseconds)}. “${text}”`);
    this.showPasses();
  }

  times() {
    const { ttft, tpot } = timesOf(this.passes);
    return { ttftMs: ttft.toFixed(1), tpotMs: tpot === null ? "" : tpot.toFixed(1) };
  }

  firstPass(promptIds, phrase) {
    const { phrase: text, newTokens } = this.asked;
    if (text !== this.ran.phrase || newTokens !== this.ran.newTokens) this.ran = { phrase: text, newTokens, runs: {} };
    this.ran.runs[this.mode] = this.passes;
    this.root.dataset.promptIds = promptIds.join(" ");
    const [layer, head] = phrase.open.map(String);
    this.grid = this.modelFrom({
      data: { phrases: [phrase] }, phrase: 0, step: phrase.known, layer, head, without_cache: this.mode === "recomputed",
    });
    this.unmount?.();
    this.parts.result.innerHTML = '<p class="pd-times"></p><div class="pd-measured"></div><div class="pd-place"></div>';
    this.unmount = this.widgets["attention-grid"].render({ model: this.grid, el: this.parts.result.querySelector(".pd-place") });
  }

  showPasses() {
    const { runs } = this.ran;
    this.parts.result.querySelector(".pd-measured").innerHTML = passesHtml(runs);
    this.parts.result.querySelector(".pd-times").innerHTML = Object.keys(MODES).filter((mode) => runs[mode])
      .map((mode) => escapeHtml(sentenceOf(runs[mode], mode))).map((line) => line[0].toUpperCase() + line.slice(1)).join(".<br>") + ".";
  }

  on_done() {
    const { phrase, newTokens } = this.asked;
    history.replaceState(history.state, "", hashWith(location.hash, phrase, newTokens));
    const other = this.mode === "kept" ? "Tick “Recompute all rows every pass” and run again to see where the times part." : "Compare the passes: the times part from the second one on.";
    this.show("done", `Done. ${other}`);
  }

  on_stopped() {
    const loaded = this.loaded;
    this.show(loaded ? "ready" : "idle", loaded ? "Stopped; what was drawn stays." : `Stopped. ${this.invitation()}`);
  }

  on_error({ line }) {
    this.parts.file.hidden = this.loaded;
    this.show("error", `${line[0].toUpperCase()}${line.slice(1)}.`);
  }
}

function render({ model, el, page }) {
  new PhraseView(el, model, page);
  el.setAttribute("data-live", "");
}

export default { render };
