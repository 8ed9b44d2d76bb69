// The decoder of model.py, attention.py, cache.py and generate.py once more, for the reader's browser. Python is the
// reference: a test runs both and compares. Arrays are flat Float32Arrays, row after row; sums run in float64.

import { linear, readGguf } from "./gguf.js";

/** Read the model out of the file: { config, embedding, layers, norm }, and the fields that the tokenizer needs. With a
    kernel, the file lies in its memory. */
export function load(buffer, kernel = null) {
  const { fields, tensors } = readGguf(buffer);
  const field = (name) => fields.get(`llama.${name}`);
  const config = {
    nLayers: field("block_count"),
    dModel: field("embedding_length"), // D
    nHeads: field("attention.head_count"), // h
    nKvHeads: field("attention.head_count_kv"), // h_kv
    dHead: field("rope.dimension_count"), // d
    dFf: field("feed_forward_length"), // F
    vocabSize: field("vocab_size"), // V
    nCtx: field("context_length"),
    ropeTheta: field("rope.freq_base"),
    normEps: field("attention.layer_norm_rms_epsilon"),
  };
  const layers = Array.from({ length: config.nLayers }, (_, i) => {
    const matrix = (name) => tensors.get(`blk.${i}.${name}.weight`);
    return {
      attentionNorm: matrix("attn_norm"), // [D]
      q: matrix("attn_q"), // [h d, D]
      k: matrix("attn_k"), // [h_kv d, D]
      v: matrix("attn_v"), // [h_kv d, D]
      output: matrix("attn_output"), // [D, h d]
      ffnNorm: matrix("ffn_norm"), // [D]
      gate: matrix("ffn_gate"), // [F, D]
      up: matrix("ffn_up"), // [F, D]
      down: matrix("ffn_down"), // [D, F]
    };
  });
  const model = { config, embedding: tensors.get("token_embd.weight"), layers, norm: tensors.get("output_norm.weight"), kernel };
  return { model, fields };
}

/** Keys and values of all layers, for positions 0 .. length - 1. */
export class KVCache {
  constructor(config, capacity) {
    const size = capacity * config.nKvHeads * config.dHead;
    this.keys = Array.from({ length: config.nLayers }, () => new Float32Array(size)); // [S, h_kv, d] a layer
    this.values = Array.from({ length: config.nLayers }, () => new Float32Array(size));
    this.width = config.nKvHeads * config.dHead;
    this.length = 0;
  }

  /** Store the new rows of a layer, [n, h_kv, d], and return all that it has. */
  extend(layer, k, v) {
    this.keys[layer].set(k, this.length * this.width);
    this.values[layer].set(v, this.length * this.width);
    return [this.keys[layer], this.values[layer]];
  }
}

/** Run the new tokens through all layers, one pass, and return the logits of the last one, [V].

    `trace` is called with (layer, head, position of the query, its weights); `between` before each layer: what it
    waits for may be a reader who wants to stop. */
export async function forward(model, ids, cache, { trace, between } = {}) {
  const { config, embedding, layers, norm, kernel } = model;
  const [n, D] = [ids.length, config.dModel];
  const x = new Float32Array(n * D); // [n, D]
  ids.forEach((id, i) => embedding.unpack(id, x.subarray(i * D, (i + 1) * D)));
  const rotation = rotaryAngles(config, cache.length, n);
  for (const [index, layer] of layers.entries()) {
    await between?.();
    add(x, attentionBlock(model, layer, index, x, n, rotation, cache, trace));
    add(x, feedForward(model, layer, x, n));
  }
  cache.length += n;
  const last = x.subarray((n - 1) * D); // [1, D]: only this row chooses the next token
  return linear(embedding, rmsNorm(last, norm, config.normEps), 1, kernel); // [V, D] @ [D] -> [V]
}

function attentionBlock({ config, kernel }, layer, index, x, n, rotation, cache, trace) {
  const normed = rmsNorm(x, layer.attentionNorm, config.normEps); // [n, D]
  const q = rotate(linear(layer.q, normed, n, kernel), n, rotation); // [n, h, d]
  const k = rotate(linear(layer.k, normed, n, kernel), n, rotation); // [n, h_kv, d]
  const v = linear(layer.v, normed, n, kernel); // [n, h_kv, d]
  const [keys, values] = cache.extend(index, k, v); // [S, h_kv, d] each
  const mixed = attention(config, q, keys, values, n, cache.length, trace && ((...seen) => trace(index, ...seen)));
  return linear(layer.output, mixed, n, kernel); // [n, h d] @ [h d, D] -> [n, D]
}

/** Average the values, weighted by softmax(q · k / √d) over the allowed keys: those up to the query's own position. */
function attention({ nHeads, nKvHeads, dHead }, q, keys, values, n, first, trace) {
  const out = new Float32Array(n * nHeads * dHead); // [n, h, d]
  const [width, scale] = [nKvHeads * dHead, dHead ** -0.5];
  for (let head = 0; head < nHeads; head += 1) {
    const kv = Math.floor(head / (nHeads / nKvHeads)) * dHead; // query heads share a KV head
    for (let i = 0; i < n; i += 1) {
      const query = (i * nHeads + head) * dHead;
      const weights = new Float64Array(first + i + 1); // causal: one key for each position so far
      for (let s = 0; s < weights.length; s += 1) {
        for (let c = 0; c < dHead; c += 1) weights[s] += q[query + c] * keys[s * width + kv + c];
        weights[s] *= scale;
      }
      softmax(weights);
      for (let s = 0; s < weights.length; s += 1) {
        for (let c = 0; c < dHead; c += 1) out[query + c] += weights[s] * values[s * width + kv + c];
      }
      trace?.(head, first + i, weights);
    }
  }
  return out;
}

function feedForward({ config, kernel }, layer, x, n) {
  const normed = rmsNorm(x, layer.ffnNorm, config.normEps); // [n, D]
  const [gate, up] = [linear(layer.gate, normed, n, kernel), linear(layer.up, normed, n, kernel)]; // [n, F] each
  gate.forEach((value, i) => { gate[i] = silu(value) * up[i]; });
  return linear(layer.down, gate, n, kernel); // [n, F] @ [F, D] -> [n, D]
}

/** Scale each row to root mean square 1, then by `weight` [D]: [n, D] -> [n, D]. */
function rmsNorm(x, weight, eps) {
  const [out, D] = [new Float32Array(x.length), weight.length];
  for (let start = 0; start < x.length; start += D) {
    let squares = 0;
    for (let i = 0; i < D; i += 1) squares += x[start + i] ** 2;
    const scale = 1 / Math.sqrt(squares / D + eps);
    for (let i = 0; i < D; i += 1) out[start + i] = x[start + i] * scale * weight[i];
  }
  return out;
}

function silu(x) {
  return x / (1 + Math.exp(-x));
}

/** Replace scores by their softmax; return them. */
export function softmax(scores) {
  const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  let total = 0;
  for (let i = 0; i < scores.length; i += 1) total += scores[i] = Math.exp(scores[i] - most);
  for (let i = 0; i < scores.length; i += 1) scores[i] /= total;
  return scores;
}

/** Cos and sin of position · theta^(-2i/d), for positions first .. first + n - 1: [n, d/2] each. */
function rotaryAngles({ dHead, ropeTheta }, first, n) {
  const angles = Float64Array.from({ length: (n * dHead) / 2 }, (_, at) => {
    const [i, pair] = [Math.floor(at / (dHead / 2)), at % (dHead / 2)];
    return (first + i) * ropeTheta ** ((-2 * pair) / dHead);
  });
  return { cos: angles.map(Math.cos), sin: angles.map(Math.sin), dHead };
}

/** Turn each pair of every row by its position's angle, in place: [n, heads, d]. The file has the two of a pair side by
    side (Python puts them d/2 apart): queries and keys in the same order have the same scores. */
function rotate(x, n, { cos, sin, dHead }) {
  const heads = x.length / (n * dHead);
  for (let at = 0; at < x.length; at += 2) {
    const angle = Math.floor(at / (heads * dHead)) * (dHead / 2) + (at % dHead) / 2;
    const [a, b] = [x[at], x[at + 1]];
    x[at] = a * cos[angle] - b * sin[angle];
    x[at + 1] = b * cos[angle] + a * sin[angle];
  }
  return x;
}

function add(x, more) {
  for (let i = 0; i < x.length; i += 1) x[i] += more[i];
}

/** Choose the likeliest token; of equal logits the lowest id. */
export function greedy(logits) {
  let best = 0;
  for (let id = 1; id < logits.length; id += 1) if (logits[id] > logits[best]) best = id;
  return best;
}

/** Continue a prompt greedily, one token a pass; `onPass` gets each new token, its pass and its logits.

    Without a cache every pass starts from an empty one: all rows again, for the last one's logits. */
export async function generate(model, prompt, maxNewTokens, { useCache = true, onPass, trace, between } = {}) {
  const ids = [...prompt];
  const room = prompt.length + maxNewTokens - 1; // the last token is never fed back
  let cache = new KVCache(model.config, room);
  for (let made = 0; made < maxNewTokens; made += 1) {
    await between?.();
    const start = performance.now();
    if (!useCache) cache = new KVCache(model.config, room);
    const rows = ids.slice(cache.length);
    const logits = await forward(model, rows, cache, { trace, between: rows.length > 1 ? between : undefined });
    const token = greedy(logits);
    const milliseconds = performance.now() - start;
    ids.push(token);
    const phase = !useCache ? "full" : made === 0 ? "prefill" : "decode";
    onPass?.(token, { phase, nQueries: rows.length, nKeys: cache.length, milliseconds }, logits);
  }
  return ids;
}
