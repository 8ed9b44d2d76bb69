// Byte-pair encoding with the file's own vocabulary and merges, as SmolTokenizer does it with the package tokenizers.

const CONTROL = 3; // token type in a GGUF file: special tokens
// GPT-2's words; digits have been taken apart before.
const WORDS = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const PIECES = /\p{N}|\P{N}+/gu;

export class Tokenizer {
  constructor(fields) {
    this.vocabulary = fields.get("tokenizer.ggml.tokens");
    const kinds = fields.get("tokenizer.ggml.token_type");
    this.special = new Set(this.vocabulary.filter((_, id) => kinds[id] === CONTROL));
    this.idOf = new Map(this.vocabulary.map((token, id) => [token, id]));
    this.rankOf = new Map(fields.get("tokenizer.ggml.merges").map((pair, rank) => [pair, rank]));
    this.charOf = charOfByte();
    this.byteOf = new Map(this.charOf.map((character, byte) => [character, byte]));
    this.longest = this.vocabulary.reduce((most, token) => Math.max(most, token.length), 0);
    const longestFirst = [...this.special].sort((a, b) => b.length - a.length).map((token) => token.replace(/[|\\{}()[\]^$+*?.]/g, "\\$&"));
    this.specialPattern = new RegExp(`(${longestFirst.join("|")})`);
  }

  /** Return the ids. Special tokens written out in the text are recognised; half a surrogate pair counts as U+FFFD. */
  encode(text) {
    return text.split(this.specialPattern).flatMap((part) => {
      if (this.special.has(part)) return [this.idOf.get(part)];
      return (part.match(PIECES) ?? []).flatMap((piece) => (piece.match(WORDS) ?? []).flatMap((word) => this.merge(word)));
    });
  }

  /** Join neighbours of one word, the pair learnt first at a time, until none is known. */
  merge(word) {
    // a byte that the vocabulary lacks is left out
    const parts = [...new TextEncoder().encode(word)].map((byte) => this.charOf[byte]).filter((c) => this.idOf.has(c));
    for (;;) {
      let [best, at] = [Infinity, -1];
      for (let i = 0; i + 1 < parts.length; i += 1) {
        const rank = this.rankOf.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
        if (rank < best) [best, at] = [rank, i];
      }
      if (at < 0) return parts.map((part) => this.idOf.get(part));
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
  }

  /** Return the text, special tokens included. */
  decode(ids) {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(ids.flatMap((id) => this.bytesOf(id))));
  }

  /** Return one string an id, for display; bytes that are no whole character show as ⟨D0⟩. */
  tokens(ids) {
    return ids.map((id) => (this.special.has(this.vocabulary[id]) ? this.vocabulary[id] : readable(this.bytesOf(id))));
  }

  bytesOf(id) {
    const token = this.vocabulary[id];
    return this.special.has(token) ? [...new TextEncoder().encode(token)] : [...token].map((c) => this.byteOf.get(c));
  }
}

/** The byte-level alphabet: printable bytes stand for themselves, the others for characters from 256 on. */
function charOfByte() {
  let other = 256;
  const printable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : other++));
}

function readable(bytes) {
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let [text, at] = ["", 0];
  while (at < bytes.length) {
    const size = [1, 2, 3, 4].find((n) => at + n <= bytes.length && decodes(strict, bytes.slice(at, at + n)));
    text += size ? strict.decode(Uint8Array.from(bytes.slice(at, at + size))) : `⟨${bytes[at].toString(16).toUpperCase().padStart(2, "0")}⟩`;
    at += size ?? 1;
  }
  return text;
}

function decodes(decoder, bytes) {
  try {
    decoder.decode(Uint8Array.from(bytes));
    return true;
  } catch {
    return false;
  }
}
