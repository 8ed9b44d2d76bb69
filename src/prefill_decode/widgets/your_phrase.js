// A phrase of the reader's own in the plain page. The model runs in a worker (twin/); this module asks it, measures
// nothing itself, and shows what comes: a grid that grows by a row a pass, and the time of every pass.

const STORE = "prefill-decode"; // the same as the worker's
const MODES = { kept: "With a cache", recomputed: "Without a cache" };

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
  return `${formatMs(ttft)} to the first token (TTFT)${each}; ${counted(rows, "row")}, ${counted(pairs, "query–key pair")} a head`;
}

function counted(count, what) {
  return `${formatCount(count)} ${what}${count === 1 ? "" : "s"}`;
}

/** What to do next, or what both ways of running show together. */
export function conclusionOf({ kept, recomputed }) {
  if ((kept ?? recomputed).length === 1) return "One token takes one pass, with a cache or without. Ask for more.";
  if (!recomputed) return "Now tick “Without a cache” and run again: from which pass on do the times part?";
  if (!kept) return "Now untick “Without a cache” and run again: from which pass on do the times part?";
  const last = Math.min(kept.length, recomputed.length) - 1;
  const ratio = (recomputed[last].milliseconds / kept[last].milliseconds).toFixed(1);
  return `Pass ${last + 1}: ${counted(recomputed[last].nQueries, "row")} instead of ${kept[last].nQueries}, ${ratio} times as long.`;
}

/** The address of a run: what others keep in it stays. */
export function hashWith(hash, { phrase, newTokens, useCache }) {
  const others = hash.replace(/^#/, "").split("&").filter((part) => /^(?!phrase=|new=|cache=)[^=]+=/.test(part));
  return `#${[`phrase=${encodeURIComponent(phrase)}`, `new=${newTokens}`, `cache=${Number(useCache)}`, ...others].join("&")}`;
}

export function runOfHash(hash) {
  const entries = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  return { phrase: entries.get("phrase"), newTokens: entries.get("new"), useCache: entries.get("cache") };
}

/** Half a surrogate pair, which no address and no UTF-8 text can hold, counts as U+FFFD. */
export function wellFormed(text) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(text));
}

function phaseOf({ phase }) {
  return phase === "full" ? "recomputed" : phase;
}

/** Each way of running as one line of time, both on the same scale; a pass is a piece of it. */
export function stripsHtml(runs) {
  const totals = Object.values(runs).map((passes) => passes.reduce((sum, pass) => sum + pass.milliseconds, 0));
  const most = Math.max(...totals);
  return Object.entries(MODES).map(([mode, name]) => {
    const passes = runs[mode] ?? [];
    const pieces = passes.map((pass) => `<i data-phase="${phaseOf(pass)}" style="--pd-v:${(pass.milliseconds / most).toFixed(4)}"></i>`);
    const said = passes.length ? sentenceOf(passes, mode) : "not run yet";
    return `<p><b>${name}:</b> ${said}</p><div class="pd-strip" aria-hidden="true">${pieces.join("")}</div>`;
  }).join("");
}

/** Every pass in numbers. */
export function passesHtml(runs) {
  const modes = Object.keys(MODES).filter((mode) => runs[mode]);
  const count = Math.max(...modes.map((mode) => runs[mode].length));
  const cell = (pass) => `<td>${pass ? `${formatMs(pass.milliseconds)} <small>${counted(pass.nQueries, "row")}</small>` : ""}</td>`;
  const rows = Array.from({ length: count }, (_, i) =>
    `<tr><th scope="row">${i + 1}</th>${modes.map((mode) => cell(runs[mode][i])).join("")}</tr>`);
  const heads = modes.map((mode) => `<th scope="col">${MODES[mode]}</th>`).join("");
  return `<table class="pd-passes"><thead><tr><th scope="col">pass</th>${heads}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
}

class PhraseView {
  constructor(root, model, { widgets, modelFrom, twin }) {
    Object.assign(this, { root, widgets, modelFrom, twin });
    this.limits = Object.fromEntries(["file", "size", "sha256", "maxPrompt", "maxNew"].map((name) => [name, model.get(name)]));
    const one = (selector) => root.querySelector(selector);
    this.parts = { controls: one(".pd-controls"), elsewhere: one(".pd-elsewhere"), forget: one("[data-act=forget]"), progress: one("progress"), status: one(".pd-status"), result: one(".pd-result"), file: one(".pd-file") };
    this.fields = { phrase: one("textarea"), newTokens: one("[name=new]"), recompute: one("[name=recompute]"), file: one("[type=file]") };
    this.loaded = false;
    this.ran = { phrase: null, newTokens: null, runs: {} }; // the passes of the last phrase, by mode
    this.url = root.dataset.model && location.protocol !== "file:" ? new URL(root.dataset.model, document.baseURI).href : null;
    this.listen();
    this.parts.controls.hidden = false;
    this.parts.elsewhere.hidden = true;
    this.parts.file.hidden = this.url !== null;
    this.show("idle", this.invitation());
    if (this.fromHash()) {
      this.tell(`This phrase came with the link. ${this.invitation()}`);
      this.root.scrollIntoView();
    }
  }

  /** What may be loaded, and from where; said before anything is. */
  invitation() {
    const size = `${(this.limits.size / 1e6).toFixed(0)} MB`;
    if (this.url) return `To load: ${size}, once, from ${new URL(this.url).host}; your browser keeps them. Nothing is loaded yet.`;
    if (location.protocol === "file:") return `Opened from the disk, a page may not fetch: choose ${this.limits.file} in the folder “model” of this book.`;
    return `This copy of the book comes without the model (built with MODEL=0): choose the file ${this.limits.file}, or step through the prepared phrases above.`;
  }

  listen() {
    this.root.addEventListener("click", (event) => {
      const act = event.target.closest(".pd-acts [data-act]")?.dataset.act; // the grid has acts of its own
      if (act) this[act]();
    });
    this.fields.file.addEventListener("change", () => {
      const [file] = this.fields.file.files;
      if (file) this.open(file);
      this.fields.file.value = ""; // or the same file, mended, would not be seen
    });
    this.root.addEventListener("keydown", (event) => {
      // Enter belongs to the text, which may have several lines
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
      if (event.target.matches("textarea, input")) event.stopPropagation();
    });
    window.addEventListener("hashchange", () => this.fromHash());
  }

  /** Take a run out of the address; say whether there was one. While something runs, its address stays. */
  fromHash() {
    const { phrase, newTokens, useCache } = runOfHash(location.hash);
    if (phrase === null || this.isBusy()) return false;
    this.fields.phrase.value = phrase;
    if (/^\d+$/.test(newTokens ?? "")) this.fields.newTokens.value = newTokens;
    this.fields.recompute.checked = useCache === "0";
    return true;
  }

  show(state, line) {
    this.root.dataset.state = state;
    this.parts.status.textContent = line;
    this.parts.status.toggleAttribute("data-refused", state === "error");
    const busy = state === "loading" || state === "running";
    const idle = { load: busy || this.loaded || !this.url, run: busy || !this.loaded, stop: !busy };
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
    const address = URL.createObjectURL(new Blob([this.twin], { type: "text/javascript" }));
    const worker = new Worker(address);
    URL.revokeObjectURL(address);
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
    if (this.isBusy()) return this.tell("Something is running: Stop ends it, then choose the file again.");
    this.begin("loading", `Reading ${file.name} …`, { type: "open", file });
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
  }

  /** Give the room in the browser's store back. */
  async forget() {
    await this.keeping;
    await caches.delete(STORE);
    for (const registration of await navigator.serviceWorker.getRegistrations()) await registration.unregister();
    this.parts.forget.hidden = true;
    this.tell("Forgotten: the next visit loads the model again.");
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
    const all = (size / 1e6).toFixed(0);
    const tenth = Math.floor((10 * loaded) / size);
    const before = Math.floor(10 * (this.parts.progress.getAttribute("value") ?? 0)); // the bar moves, a tenth is told
    this.parts.progress.value = loaded / size;
    if (loaded === size) this.tell(`${all} MB are here: checking them …`);
    else if (tenth > before) this.tell(`Loaded ${(loaded / 1e6).toFixed(0)} of ${all} MB`);
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
    if (kept) this.keeping = this.keepPage().catch(() => {});
    this.loaded = true;
    this.parts.forget.hidden = !kept;
    if (this.parts.file.contains(document.activeElement)) this.root.querySelector("[data-act=run]").focus();
    this.parts.file.hidden = true;
    const there = {
      true: fromStore ? "from this browser’s store" : "and kept: this page, and those you open from now on, work without a network",
      false: "but not kept: this browser has no room for it here",
      null: "from your file",
    };
    this.show("ready", `The model is ready, ${there[kept]}. Press Run.`);
  }

  on_pass({ pass, ids, promptLen, text, phrase, row }) {
    this.passes.push(pass);
    if (this.passes.length === 1) this.firstPass(ids.slice(0, promptLen), phrase);
    else this.grid.set("row", row);
    const { ttft, tpot } = timesOf(this.passes);
    this.root.dataset.generatedIds = ids.slice(promptLen).join(" ");
    this.root.dataset.ttftMs = ttft.toFixed(1);
    this.root.dataset.tpotMs = tpot?.toFixed(1) ?? "";
    this.parts.progress.value = this.passes.length / this.asked.newTokens;
    this.showTimes(text);
  }

  /** A new run: what both ways of running took is kept as long as it is the same phrase. */
  firstPass(promptIds, phrase) {
    const { phrase: text, newTokens } = this.asked;
    const again = text === this.ran.phrase && newTokens === this.ran.newTokens;
    if (!again) this.ran = { phrase: text, newTokens, runs: {} };
    this.ran.runs[this.mode] = this.passes;
    this.root.dataset.promptIds = promptIds.join(" ");
    const [layer, head] = again ? [this.grid.get("layer"), this.grid.get("head")] : phrase.open.map(String);
    this.grid = this.modelFrom({
      data: { phrases: [phrase] }, phrase: 0, step: phrase.known, layer, head, without_cache: this.mode === "recomputed",
    });
    this.unmount?.();
    this.parts.result.innerHTML =
      '<p class="pd-text"></p><div class="pd-strips"></div><details><summary>Each pass in numbers</summary><div></div></details>' +
      '<div class="pd-place"></div>';
    this.unmount = this.widgets["attention-grid"].render({ model: this.grid, el: this.parts.result.querySelector(".pd-place") });
  }

  showTimes(text) {
    const { runs, phrase } = this.ran;
    const [goes, strips, passes] = this.parts.result.children;
    const line = (part) => escapeHtml(part.replaceAll("\n", "↵"));
    goes.innerHTML = `<bdi>${line(phrase)}</bdi><b><bdi>${line(text)}</bdi></b>`;
    strips.innerHTML = stripsHtml(runs);
    passes.lastChild.innerHTML = passesHtml(runs);
  }

  on_done() {
    history.replaceState(history.state, "", hashWith(location.hash, this.asked));
    this.show("done", `Done. ${conclusionOf(this.ran.runs)}`);
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
