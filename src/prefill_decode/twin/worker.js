// The worker behind the widget "your-phrase": loads the file, runs phrases, answers with messages. A Refusal is a
// line for the reader; whatever else goes wrong is reported by its name.

import { generate, load } from "./decoder.js";
import { Kernel } from "./kernel.js";
import { Observation } from "./observe.js";
import { Tokenizer } from "./tokenizer.js";

const STORE = "prefill-decode"; // of the browser's Cache API
const MEGA = 1e6;
// kernel.wat, assembled when the page was built; without it the twin is slower and no different
const CODE = Uint8Array.from(atob(typeof KERNEL === "string" ? KERNEL : ""), (character) => character.charCodeAt(0));

class Refusal extends Error {}

/** Let messages in: a click on Stop waits behind the work. */
function breath() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

let stop = new AbortController();
let decoder = null; // { model, tokenizer }, once loaded

const work = {
  load: ({ url, sha256, size }) => fetched(url, sha256, size),
  open: ({ file, sha256, size }) => opened(file, sha256, size),
  run: (asked) => run(asked),
};

if (typeof importScripts === "function" || typeof WorkerGlobalScope === "function") {
  onmessage = async ({ data }) => {
    if (data.type === "stop") return stop.abort();
    stop = new AbortController();
    try {
      await work[data.type](data);
    } catch (error) {
      const stopped = stop.signal.aborted;
      const line = error instanceof Refusal ? error.message : `${error.name}: ${error.message}`;
      postMessage({ type: stopped ? "stopped" : "error", line });
    }
  };
}

function needCrypto() {
  if (!crypto.subtle) throw new Refusal("the file cannot be checked here; browsers do that on https pages, on localhost and from the disk: open the page that way");
}

/** From the browser's store if it is there, else over the network, and then into the store. */
async function fetched(url, sha256, size) {
  needCrypto();
  const store = await caches.open(STORE).catch(() => null); // a private window may have none
  const stored = await store?.match(url);
  if (stored) {
    try {
      return start(await whole(stored, sha256, size), { kept: true, fromStore: true });
    } catch (error) {
      if (stop.signal.aborted) throw error;
      await store.delete(url); // damaged, or of another edition: the network has the right one
    }
  }
  const file = await whole(await answer(url), sha256, size);
  return start(file, { kept: await keep(store, url, file.bytes), fromStore: false });
}

async function opened(file, sha256, size) {
  needCrypto();
  if (file.size !== size) throw new Refusal(`“${file.name}” has ${file.size.toLocaleString("en-US")} bytes, the model’s file ${size.toLocaleString("en-US")}: choose another one`);
  start(await whole(new Response(file), sha256, size), { kept: null, fromStore: false });
}

async function answer(url) {
  const response = await fetch(url, { signal: stop.signal }).catch((error) => {
    throw new Refusal(`the site cannot be reached (${error.message}): connect and load again`);
  });
  if (response.ok) return response;
  throw new Refusal(`this site does not serve the model (${response.status}): choose the file below, or step through the prepared phrases above`);
}

/** Read a response into one array, in a kernel's memory where there is one, and tell how far it is. */
async function read(response, size) {
  const kernel = await Kernel.make(CODE, size);
  const bytes = kernel ? new Uint8Array(kernel.buffer, 0, size) : new Uint8Array(size);
  const reader = response.body.getReader();
  let [at, told] = [0, 0];
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw new Refusal(`the file stopped after ${mega(at)} of ${mega(size)} MB (${error.message}): load again`);
    });
    if (done) break;
    if (stop.signal.aborted) throw new Refusal("stopped");
    if (at + value.length > size) throw new Refusal(`the file has more than its ${size.toLocaleString("en-US")} bytes: it is not the model`);
    bytes.set(value, at);
    at += value.length;
    if (at - told > MEGA || at === size) {
      told = at;
      postMessage({ type: "progress", loaded: at });
    }
  }
  if (at < size) throw new Refusal(`the file stopped after ${mega(at)} of ${mega(size)} MB: load again`);
  return { bytes, kernel };
}

function mega(bytes) {
  return (bytes / MEGA).toFixed(0);
}

/** Read a response and check that it is the file. */
async function whole(response, sha256, size) {
  const file = await read(response, size);
  const found = await digest(file.bytes);
  if (stop.signal.aborted) throw new Refusal("stopped");
  if (found !== sha256) throw new Refusal(`the file is altered (SHA-256 ${found.slice(0, 12)}…, expected ${sha256.slice(0, 12)}…): load again, or take another copy`);
  return file;
}

async function digest(bytes) {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Put the file into the browser's store; false where there is none, or no room. */
async function keep(store, url, bytes) {
  if (!store) return false;
  try {
    await store.put(url, new Response(bytes));
    return true;
  } catch {
    return false;
  }
}

function start({ bytes, kernel }, told) {
  const { model, fields } = load(bytes.buffer, kernel);
  decoder = { model, tokenizer: new Tokenizer(fields) };
  postMessage({ type: "ready", ...told });
}

async function run({ phrase, newTokens, useCache, maxPrompt, maxNew }) {
  const { model, tokenizer } = decoder;
  const prompt = checkedPrompt(tokenizer, phrase, maxPrompt);
  if (!Number.isInteger(newTokens) || newTokens < 1 || newTokens > maxNew) throw new Refusal(`New tokens: expected a whole number from 1 to ${maxNew}`);
  const seen = new Observation(model.config, tokenizer, prompt, newTokens);
  const onPass = (token, pass, logits) => {
    const isFirst = seen.rows === 0;
    seen.choose(token, logits);
    const text = tokenizer.decode(seen.ids.slice(prompt.length));
    postMessage({ type: "pass", pass, ids: seen.ids, promptLen: prompt.length, text, ...(isFirst ? { phrase: seen.phrase() } : { row: seen.newest() }) });
  };
  const between = async () => {
    await breath();
    if (stop.signal.aborted) throw new Refusal("stopped");
  };
  await generate(model, prompt, newTokens, { useCache, onPass, between, trace: (...row) => seen.see(...row) });
  postMessage({ type: "done" });
}

/** Return the ids of a phrase that fits; a text that cannot fit is not taken apart. */
function checkedPrompt(tokenizer, phrase, most) {
  const refuse = (size) => { throw new Refusal(`the phrase has ${size}, expected at most ${most} tokens: shorten it`); };
  if (phrase.length > most * tokenizer.longest) refuse(`${phrase.length.toLocaleString("en-US")} characters`);
  const prompt = tokenizer.encode(phrase);
  if (prompt.length === 0) throw new Refusal("the phrase is empty: type a word or two");
  if (prompt.length > most) refuse(`${prompt.length.toLocaleString("en-US")} tokens`);
  return prompt;
}
