// A phrase seen from inside, as observe.py and widgets/attention_grid_data.py describe it: the same bytes, row by row.

import { softmax } from "./decoder.js";

const SINK = 0.95;
const LIKELIEST = 5;
const BIDI_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** Keeps the attention weights of all heads, and tells the grid what a new row adds. */
export class Observation {
  constructor(config, tokenizer, prompt, maxNewTokens) {
    Object.assign(this, { config, tokenizer, ids: [...prompt] });
    this.promptLen = prompt.length;
    this.steps = prompt.length + maxNewTokens - 1; // T rows: the last token has none
    this.heads = config.nLayers * config.nHeads;
    this.weights = new Float64Array(this.heads * pairs(this.steps)); // [layers · h, T (T + 1) / 2], lower triangles
    this.rows = 0;
  }

  /** Where row q of a head begins. */
  at(head, q) {
    return head * pairs(this.steps) + pairs(q);
  }

  /** Take the weights of one query, as `forward` hands them out. */
  see(layer, head, q, weights) {
    this.weights.set(weights, this.at(layer * this.config.nHeads + head, q));
  }

  /** Take a chosen token with the logits it was chosen from. */
  choose(token, logits) {
    this.rows = this.ids.length;
    this.ids.push(token);
    this.likely = likeliest(logits, this.tokenizer);
  }

  /** The data of an AttentionGrid when prefill has ended: rows to come are empty. */
  phrase() {
    const { config, tokenizer, ids, steps, promptLen } = this;
    const tokens = tokenizer.tokens(ids).map(shown);
    const means = this.headMeasures();
    const named = this.named(means);
    return {
      label: null,
      tokens: [...tokens, ...Array(steps + 1 - tokens.length).fill("…")],
      promptLen,
      steps,
      known: this.rows,
      positions: steps,
      layers: Array.from({ length: config.nLayers }, (_, i) => String(i)),
      heads: Array.from({ length: config.nHeads }, (_, i) => String(i)),
      names: named,
      open: named[0]?.slice(0, 2) ?? [0, 0],
      weights: Uint8Array.from(this.weights, (weight) => Math.round(weight * 255)),
      weightStep: "1/255",
      scores: null,
      measures: this.measures(means),
      sinks: this.sinks(),
      next: [...Array(this.rows - 1).fill([]), this.likely, ...Array(steps - this.rows).fill([])],
      kvBytes: 2 * config.nLayers * config.nKvHeads * config.dHead * 4,
      dtype: "float32",
      questions: [],
    };
  }

  /** What the newest row adds: its bytes in all heads, the token that it chose, and what is measured anew. */
  newest() {
    const q = this.rows - 1;
    const bytes = new Uint8Array(this.heads * this.rows);
    for (let head = 0; head < this.heads; head += 1) {
      const start = this.at(head, q);
      bytes.set(this.weights.subarray(start, start + this.rows).map((weight) => Math.round(weight * 255)), head * this.rows);
    }
    const [token] = this.tokenizer.tokens(this.ids.slice(-1)).map(shown);
    const means = this.headMeasures();
    return { q, bytes, token, next: this.likely, names: this.named(means), measures: this.measures(means), sinks: this.sinks() };
  }

  /** Four measures of every head, each a mean over rows 1 .. T - 1 (row 0 has no choice); of one row, none. */
  headMeasures() {
    const means = { first: [], previous: [], itself: [], entropy: [] };
    for (let head = 0; head < this.heads; head += 1) {
      const sums = { first: 0, previous: 0, itself: 0, entropy: 0 };
      for (let q = 1; q < this.rows; q += 1) {
        const row = this.weights.subarray(this.at(head, q), this.at(head, q) + q + 1);
        sums.first += row[0];
        sums.previous += row[q - 1];
        sums.itself += row[q];
        row.forEach((weight) => { sums.entropy -= weight > 0 ? weight * Math.log2(weight) : 0; });
      }
      for (const name of Object.keys(means)) means[name].push(sums[name] / (this.rows - 1));
    }
    return means;
  }

  measures(means) {
    if (this.rows === 1) return [];
    const mostBits = Math.round(Math.log2(this.rows) * 1e4) / 1e4;
    return Object.entries(MEASURES).map(([key, words]) => {
      const scale = key === "entropy"
        ? { max: mostBits, top: `${mostBits.toFixed(1)} bits`, decimals: 1 } : { max: 1, top: "1", decimals: 2 };
      return { ...words, ...scale, data: Uint8Array.from(means[key], (value) => Math.round((value / scale.max) * 255)) };
    });
  }

  /** Heads that never look far beyond the first token. */
  sinks() {
    if (this.rows === 1) return [];
    return Array.from({ length: this.heads }, (_, head) => head).filter((head) => {
      for (let q = 1; q < this.rows; q += 1) if (this.weights[this.at(head, q)] < SINK) return false;
      return true;
    });
  }

  /** The head that leads each measure in this phrase: [layer, head, words]. */
  named(means) {
    if (this.rows === 1) return [];
    const words = {
      previous: (value) => `previous token (${value})`,
      itself: (value) => `itself (${value})`,
      entropy: (value) => `broad (${value} bits)`,
      first: (value) => `first-token sink (${value})`,
    };
    const found = new Map(); // a head that leads twice has the later name, at its first place
    for (const [key, said] of Object.entries(words)) {
      const best = means[key].indexOf(Math.max(...means[key]));
      found.set(best, said(means[key][best].toFixed(2)));
    }
    const { nHeads } = this.config;
    return [...found].map(([head, text]) => [Math.floor(head / nHeads), head % nHeads, text]);
  }
}

const ROWS = "in this phrase, without the first row";
const MEASURES = {
  first: { name: "Share on the first token", says: "on the first token", meaning: `Mean weight on the first token ${ROWS}.` },
  previous: {
    name: "Share on the previous token", says: "on the previous token", meaning: `Mean weight on the token just before ${ROWS}.`,
  },
  itself: { name: "Share on itself", says: "on itself", meaning: `Mean weight on the query itself ${ROWS}.` },
  entropy: { name: "Entropy (in bits)", says: "bits of entropy", meaning: `Mean spread of the weight ${ROWS}; 0 is one key only.` },
};

function pairs(rows) {
  return (rows * (rows + 1)) / 2;
}

/** The likeliest next tokens of one row of logits [V], with their probabilities per mille. */
function likeliest(logits, tokenizer) {
  const p = softmax(Float64Array.from(logits));
  const top = [...p.keys()].sort((a, b) => p[b] - p[a] || a - b).slice(0, LIKELIEST);
  return tokenizer.tokens(top).map((token, i) => [shown(token), Math.round(1000 * p[top[i]])]);
}

/** A token as the page shows it: spaces, line ends and invisible characters become marks. */
export function shown(token) {
  const body = token.replace(/^ +/, "");
  let marks = "·".repeat(token.length - body.length);
  const named = (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  if (/^[\p{Cf}\p{Mn}\p{Zs}]+$/u.test(body) && !BIDI_CONTROLS.test([...body][0])) return marks + [...body].map(named).join("");
  if (/^\p{M}/u.test(body)) marks += "◌"; // a combining mark needs a base, or it climbs onto the neighbour
  const character = (c) => {
    if (c === "\n") return "↵";
    if (c === "\t") return "⇥";
    if (/\p{Cc}/u.test(c)) return c < " " ? String.fromCodePoint(0x2400 + c.codePointAt(0)) : named(c);
    return /[\p{Cs}\p{Zl}\p{Zp}]/u.test(c) || BIDI_CONTROLS.test(c) ? named(c) : c;
  };
  return marks + [...body].map(character).join("") || "⟨empty⟩";
}
