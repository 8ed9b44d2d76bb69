// The weights file, read in the browser: GGUF 3, as smollm2.py reads it with the package gguf. Matrices stay packed
// as they lie in the file; a product unpacks what it needs.

const MAGIC = 0x46554747; // "GGUF"
export const BLOCK = 32; // numbers that share a scale
const TYPES = { 0: "F32", 3: "Q4_1", 8: "Q8_0" };
const BLOCK_BYTES = { Q4_1: 20, Q8_0: 34 };

/** Read what the file says of itself and where its tensors lie: { fields, tensors }, by name. */
export function readGguf(buffer) {
  const reader = new Reader(buffer);
  if (reader.u32() !== MAGIC || reader.u32() !== 3) throw new Error("this is no GGUF file of version 3");
  const [nTensors, nFields] = [reader.u64(), reader.u64()];
  const fields = new Map(Array.from({ length: nFields }, () => [reader.string(), reader.value(reader.u32())]));
  const infos = Array.from({ length: nTensors }, () => ({
    name: reader.string(),
    shape: Array.from({ length: reader.u32() }, () => reader.u64()),
    type: TYPES[reader.u32()],
    offset: reader.u64(),
  }));
  const alignment = fields.get("general.alignment") ?? 32;
  const start = Math.ceil(reader.at / alignment) * alignment;
  const tensors = new Map(infos.map((info) => [info.name, tensorAt(buffer, start + info.offset, info)]));
  return { fields, tensors };
}

class Reader {
  constructor(buffer) {
    this.view = new DataView(buffer);
    this.bytes = new Uint8Array(buffer);
    this.text = new TextDecoder();
    this.at = 0;
  }

  take(size, method) {
    const value = this.view[method](this.at, true);
    this.at += size;
    return value;
  }

  u32() {
    return this.take(4, "getUint32");
  }

  u64() {
    return Number(this.take(8, "getBigUint64"));
  }

  string() {
    const length = this.u64();
    this.at += length;
    return this.text.decode(this.bytes.subarray(this.at - length, this.at));
  }

  /** One value of a numbered type; 9 is an array of values of another. */
  value(type) {
    if (type === 8) return this.string();
    if (type === 9) {
      const element = this.u32();
      return Array.from({ length: this.u64() }, () => this.value(element));
    }
    const [size, method] = [
      [1, "getUint8"], [1, "getInt8"], [2, "getUint16"], [2, "getInt16"], [4, "getUint32"], [4, "getInt32"],
      [4, "getFloat32"], [1, "getUint8"], null, null, [8, "getBigUint64"], [8, "getBigInt64"], [8, "getFloat64"],
    ][type];
    return Number(this.take(size, method));
  }
}

function tensorAt(buffer, offset, { name, shape, type }) {
  const [columns, rows = 1] = shape; // GGUF names the fastest axis first
  if (type === "F32") return new Float32Array(buffer, offset, columns * rows);
  if (!BLOCK_BYTES[type]) throw new Error(`the tensor ${name} is packed in a way that this page does not read`);
  return new Matrix(buffer, offset, rows, columns, type);
}

/** Float16 as it is stored, to its number: a table of all 65,536. */
export const HALF = Float32Array.from({ length: 65536 }, (_, bits) => {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
});

/** A packed matrix, [rows, columns]: blocks of 32 numbers with a scale (Q8_0), or a scale and a least value (Q4_1). */
class Matrix {
  constructor(buffer, offset, rows, columns, type) {
    this.rows = rows;
    this.columns = columns;
    this.type = type;
    this.rowBytes = (columns / BLOCK) * BLOCK_BYTES[type];
    this.bytes = new Uint8Array(buffer, offset, rows * this.rowBytes);
    this.signed = new Int8Array(buffer, offset, rows * this.rowBytes);
    this.halves = new Uint16Array(buffer, offset, (rows * this.rowBytes) / 2);
  }

  /** Write row r as numbers into `out` [columns]. */
  unpack(r, out) {
    const { bytes, signed, halves } = this;
    let at = r * this.rowBytes;
    for (let start = 0; start < this.columns; start += BLOCK) {
      const scale = HALF[halves[at >> 1]];
      if (this.type === "Q8_0") {
        for (let i = 0; i < BLOCK; i += 1) out[start + i] = scale * signed[at + 2 + i];
        at += 34;
      } else {
        const least = HALF[halves[(at >> 1) + 1]];
        for (let i = 0; i < 16; i += 1) { // a byte holds numbers i and i + 16
          const pair = bytes[at + 4 + i];
          out[start + i] = scale * (pair & 15) + least;
          out[start + 16 + i] = scale * (pair >> 4) + least;
        }
        at += 20;
      }
    }
    return out;
  }
}

/** Return W x for every row x: [n, in] -> [n, out]; row by row with a kernel, which is faster at every n. */
export function linear(w, x, n, kernel = null) {
  const out = new Float32Array(n * w.rows);
  if (kernel) {
    for (let i = 0; i < n; i += 1) kernel.product(w, x.subarray(i * w.columns, (i + 1) * w.columns), out.subarray(i * w.rows, (i + 1) * w.rows));
  } else if (n > 1) productOfRows(w, x, n, out);
  else if (w.type === "Q8_0") product8(w, x, out);
  else product4(w, x, out);
  return out;
}

/** The sum of x over each block. */
export function sumsOfBlocks(x) {
  const sums = new Float32Array(x.length / BLOCK);
  for (let i = 0; i < x.length; i += 1) sums[Math.floor(i / BLOCK)] += x[i];
  return sums;
}

// One row: every weight is read once, so it is used packed. 0..15 times scale, plus the least value, summed over a
// block, is scale · Σ code x + least · Σ x; the second sum is the same for every row of W.

function product4({ rows, columns, bytes, halves }, x, out) {
  const sums = sumsOfBlocks(x);
  for (let r = 0, at = 0; r < rows; r += 1) {
    let total = 0;
    for (let b = 0; b < sums.length; b += 1, at += 20) {
      const start = b * BLOCK;
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0; // four sums: the processor adds them side by side
      for (let i = 0; i < 16; i += 2) {
        const pair = bytes[at + 4 + i], next = bytes[at + 5 + i];
        s0 += (pair & 15) * x[start + i];
        s1 += (pair >> 4) * x[start + 16 + i];
        s2 += (next & 15) * x[start + i + 1];
        s3 += (next >> 4) * x[start + 17 + i];
      }
      total += HALF[halves[at >> 1]] * (s0 + s1 + s2 + s3) + HALF[halves[(at >> 1) + 1]] * sums[b];
    }
    out[r] = total;
  }
}

function product8({ rows, columns, signed, halves }, x, out) {
  for (let r = 0, at = 0; r < rows; r += 1) {
    let total = 0;
    for (let start = 0; start < columns; start += BLOCK, at += 34) {
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
      for (let i = 0; i < BLOCK; i += 4) {
        s0 += signed[at + 2 + i] * x[start + i];
        s1 += signed[at + 3 + i] * x[start + i + 1];
        s2 += signed[at + 4 + i] * x[start + i + 2];
        s3 += signed[at + 5 + i] * x[start + i + 3];
      }
      total += HALF[halves[at >> 1]] * (s0 + s1 + s2 + s3);
    }
    out[r] = total;
  }
}

/** Several rows: a row of W is unpacked once and meets all rows of x, four at a time. */
function productOfRows(w, x, n, out) {
  const { rows, columns } = w;
  const row = new Float32Array(columns);
  for (let r = 0; r < rows; r += 1) {
    w.unpack(r, row);
    let i = 0;
    for (; i + 4 <= n; i += 4) fourProducts(row, x, i * columns, out, i * rows + r, rows);
    for (; i < n; i += 1) out[i * rows + r] = oneProduct(row, x, i * columns);
  }
}

function fourProducts(row, x, start, out, at, stride) {
  const size = row.length;
  let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (let k = 0, i = start; k < size; k += 1, i += 1) {
    const weight = row[k];
    s0 += weight * x[i];
    s1 += weight * x[i + size];
    s2 += weight * x[i + 2 * size];
    s3 += weight * x[i + 3 * size];
  }
  out[at] = s0;
  out[at + stride] = s1;
  out[at + 2 * stride] = s2;
  out[at + 3 * stride] = s3;
}

function oneProduct(row, x, start) {
  let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (let k = 0, i = start; k < row.length; k += 4, i += 4) {
    s0 += row[k] * x[i];
    s1 += row[k + 1] * x[i + 1];
    s2 += row[k + 2] * x[i + 2];
    s3 += row[k + 3] * x[i + 3];
  }
  return s0 + s1 + s2 + s3;
}
