// The products of one row once more, in WebAssembly with SIMD (kernel.wat): six times as fast. A browser without it
// takes the plain ones. The file lies in the kernel's own memory, so that weights are read where they were written.

import { BLOCK, HALF, sumsOfBlocks } from "./gguf.js";

const PAGE = 65536; // bytes
const LONGEST = 65536; // numbers: a row of x, and y, are shorter

export class Kernel {
  /** Make a kernel with room for a file of `size` bytes, or return null where the browser has no SIMD. */
  static async make(code, size) {
    if (typeof WebAssembly !== "object" || !WebAssembly.validate(code)) return null;
    const at = Math.ceil(size / 16) * 16; // x, sums, y and the table of float16 numbers follow the file
    const memory = new WebAssembly.Memory({ initial: Math.ceil((at + 4 * (3 * LONGEST + HALF.length)) / PAGE) });
    const { instance } = await WebAssembly.instantiate(code, { js: { memory } });
    return new Kernel(memory.buffer, instance.exports, at);
  }

  constructor(buffer, products, at) {
    [this.x, this.sums, this.y, this.half] = [0, 1, 2, 3].map((i) => new Float32Array(buffer, at + 4 * i * LONGEST, LONGEST));
    this.half.set(HALF);
    this.buffer = buffer;
    this.products = products;
  }

  /** Write W x into `out` [rows]. */
  product({ type, bytes, rows, columns }, x, out) {
    this.x.set(x);
    if (type === "Q4_1") this.sums.set(sumsOfBlocks(x));
    const product = type === "Q4_1" ? this.products.product4 : this.products.product8;
    const [vector, sums, half, y] = [this.x, this.sums, this.half, this.y].map((array) => array.byteOffset);
    product(bytes.byteOffset, vector, sums, half, y, rows, columns / BLOCK);
    out.set(this.y.subarray(0, rows));
  }
}
