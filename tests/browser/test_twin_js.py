"""The decoder's twin in a browser, on the file that the site serves, against the Python it repeats."""

import base64
import json
import random
from collections.abc import Callable

import numpy as np
import pytest
from gguf import GGUFReader, GGUFValueType, dequantize
from phrase_fixture import written
from playwright.sync_api import Page
from reference import reference_cases
from widget_page import load_module

from prefill_decode import smollm2, twin
from prefill_decode.generate import generate
from prefill_decode.model import forward
from prefill_decode.observe import notable_heads, observe
from prefill_decode.widgets.attention_grid_data import phrase_data, shown

CASES = reference_cases()
PARIS = "The capital of France is"

# Arrays leave the page as base64: a list of 49,152 numbers is slow to carry, and rounds what it carries.
HELPERS = """
window.packed = (array) => {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  let text = "";
  for (let at = 0; at < bytes.length; at += 4096) text += String.fromCharCode(...bytes.subarray(at, at + 4096));
  return btoa(text);
};
window.floats = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
window.opened_ = async (url, size) => {
  const { bytes, kernel } = await read(await fetch(url), size);
  const { model, fields } = load(bytes.buffer, kernel);
  const { tensors } = readGguf(bytes.buffer);
  const models = { kernel: model, plain: { ...model, kernel: null } };
  window.loaded = { models, tokenizer: new Tokenizer(fields), tensors };
};
window.generated = async ([way, prompt, newTokens, useCache]) => {
  const [passes, logits] = [[], []];
  const onPass = (token, pass, row) => {
    passes.push([pass.phase, pass.nQueries, pass.nKeys]);
    if (passes.length === 1) logits.push(packed(row));
  };
  const ids = await generate(loaded.models[way], prompt, newTokens, { useCache, onPass });
  return { ids: ids.slice(prompt.length), passes, logits: logits[0] };
};
"""
# With products in WebAssembly, and as a browser without SIMD computes them.
WAYS = ("kernel", "plain")


def unpacked(text: str, dtype: str = "<f4") -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


@pytest.fixture(scope="module")
def page(shared_new_page: Callable[..., Page], site: str) -> Page:
    """Return a page that holds the twin and has loaded the model."""
    page = shared_new_page()
    page.goto(f"{site}/book/references.html")
    page.add_script_tag(content=twin.source())
    page.add_script_tag(content=HELPERS)
    load_module(page, "your_phrase")
    page.evaluate("([url, size]) => opened_(url, size)", [f"{site}/model/{smollm2.FILE}", smollm2.FILE_BYTES])
    assert page.evaluate("loaded.models.kernel.kernel instanceof Kernel")
    return page


@pytest.fixture(scope="module")
def tensors() -> dict:
    """Return the file's tensors as the package gguf reads them."""
    return {tensor.name: tensor for tensor in GGUFReader(smollm2.weights_path()).tensors}


# --- the model


def expect_case(page: Page, model, way: str, case: dict, new_tokens: int) -> None:
    """Expect the tokens of a reference case, its likeliest logits, and all logits of Python."""
    made = page.evaluate("generated", [way, case["ids"], new_tokens, True])
    assert made["ids"] == case["greedy24"][:new_tokens]
    logits = unpacked(made["logits"])
    assert np.argsort(-logits, kind="stable")[:5].tolist() == case["top5_ids"]
    assert logits[case["top5_ids"]] == pytest.approx(case["top5_logits"], abs=2e-3)
    assert np.abs(logits - forward(model, case["ids"])[-1]).max() <= 5e-3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_reference_case(page, real_model, tokenizer, case):
    text = tokenizer.decode(case["ids"])  # the chat template's tokens are written out
    assert page.evaluate("text => loaded.tokenizer.encode(text)", text) == case["ids"]
    expect_case(page, real_model, "kernel", case, 24)


@pytest.mark.parametrize("case", CASES[:5], ids=lambda case: case["name"])
def test_reference_case_without_the_kernel(page, real_model, case):
    expect_case(page, real_model, "plain", case, 4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "recomputed"])
def test_passes_are_those_of_generate(page, real_model, tokenizer, use_cache, way):
    prompt = tokenizer.encode(PARIS)
    expected = generate(real_model, prompt, 4, use_cache=use_cache)
    made = page.evaluate("generated", [way, prompt, 4, use_cache])
    assert made["ids"] == expected.ids[len(prompt) :]
    assert made["passes"] == [[p.phase, p.n_queries, p.n_keys] for p in expected.passes]


def test_of_equal_logits_the_lowest_id_is_chosen(page):
    assert page.evaluate("greedy(new Float32Array([-1, 3, 2, 3]))") == 1


# --- the tokenizer


BY_HAND = [
    "", " ", "   ", "\t", "\n", "\r\n", "\n\n\n", " \n ", "a  b   c", "a \n\tb", "  a", "a  ", "\t\tx\n",
    "\x0b\x0c\x1c\x1f", "a\u00a0b", "a\u0085b", "\u0085", " \u0085x", "\ufeffx", "x\ufeff", "\u2028\u2029",
    "a\u2003 b", "\u180e", "a\u200bb", "0", "007", "12 345", "3.14", "١٢٣ ४५", "x²³½Ⅷ", "a1b2", " 1 2", "𝟙𝟚",
    "I'd've we're it's he'll I'm don't 'S 'RE o''s", "'", "''", "'re", "x'd", "’s", "Привет, мир", "Ελληνικά",
    "日本語のテキスト", "汉字简体字", "한국어", "ไทยภาษา", "हिन्दी में", "বাংলা", "ქართული", "አማርኛ", "שלום עולם",
    "مرحبا \u202eabc\u202c بالعالم", "\u2066x\u2069\u200f", "e\u0301", "\u0301", " \u0301a",
    "Z\u0351\u036b\u0343a\u0328lgo", "👩\u200d👩\u200d👧", "🏖\ufe0f", "👍🏽", "🇫🇷🇩🇪", "1\ufe0f\u20e3",
    "\U000e0067\U000e007f", "😀😀", "\u200d", "<|im_start|>user\nhi<|im_end|>\n", "<|endoftext|>",
    "<|endoftext|><|endoftext|>", "a<|im_end|>b", "<|im_end", "|im_end|>", "<|im_<|im_end|>end|>", "<|IM_END|>",
    " <|im_end|> ", "<repo_name>x<reponame><file_sep>", "<gh_stars>", "<empty_output>",
    "<table><tr><td>&amp;</td></tr></table>", "<!-- x -->", "def f(x):\n    return x**2  # ok\n",
    "if (a&&b) { c(); }", "a_b__c", "$x^2$", "\\frac{1}{2}", "C:\\dir", "https://a.b/c?d=e&f=%20#g", "...!?",
    "—–‐", "…", "a.b,c;d", "x\x00y", "\x7f\x80\x9f", "\u00ad", "\ud800", "a\udc00b", "\udc00\ud800", "\ud83d",
    "\ud83d\ude00\ude00", "\uffff\ufffe\ufffd", "\U0010ffff", "ǅ ﬁ ℌ", "ſ K Å", "İı",
]  # fmt: skip
PIECES = [
    *BY_HAND,
    *"aZ é ñ ß 1 9 ² _ - ' \" . , \n \t \r 日 ら ह ्  \u0301 \u200d 👩 \u0085 \ufeff".split(" "),
    " ",
    "  ",
]


def sampled(count: int) -> list[str]:
    """Return texts put together at random, and some of characters from all of Unicode: the same in every run."""
    chance = random.Random(7)
    mixed = ["".join(chance.choices(PIECES, k=chance.randint(1, 9))) for _ in range(count)]
    planes = [0x250, 0x3000, 0xFFFF, 0x110000]
    wild = ["".join(chr(chance.randrange(chance.choice(planes))) for _ in range(12)) for _ in range(count)]
    return mixed + wild


TOKENISED = """texts => JSON.parse(texts).map((text) => {
  const { tokenizer } = loaded;
  const ids = tokenizer.encode(module.wellFormed(text));
  const tokens = tokenizer.tokens(ids);
  const begun = tokenizer.decode(ids.slice(0, Math.ceil(ids.length / 2)));
  return [ids, tokens, tokenizer.decode(ids), begun, tokens.map(shown)];
})"""


def tokenised(tokenizer, text: str) -> list:
    """Return what the page says of a text, by Python."""
    ids = tokenizer.encode(text)
    tokens = tokenizer.tokens(ids)
    begun = tokenizer.decode(ids[: -(-len(ids) // 2)])  # may end within a character
    return [ids, tokens, tokenizer.decode(ids), begun, [shown(token) for token in tokens]]


def test_texts_are_taken_apart_as_python_does(page, tokenizer):
    texts = BY_HAND + sampled(300)
    found = page.evaluate(TOKENISED, json.dumps(texts))  # escaped: half a surrogate pair must arrive as it is
    differing = [text for text, said in zip(texts, found, strict=True) if said != tokenised(tokenizer, text)]
    assert differing == []


def test_every_token_of_the_vocabulary_is_shown_as_python_shows_it(page, tokenizer):
    every = range(49152)
    found = page.evaluate("every => loaded.tokenizer.tokens([...Array(every).keys()]).map((t) => [t, shown(t)])", 49152)
    assert found == [[token, shown(token)] for token in tokenizer.tokens(every)]


# --- the phrase seen from inside


SEEN = """async ([text, newTokens]) => {
  const { models: { kernel: model }, tokenizer } = loaded;
  const prompt = tokenizer.encode(text);
  const seen = new Observation(model.config, tokenizer, prompt, newTokens);
  const rows = [];
  let first = null;
  const plain = ({ measures, bytes, weights, ...rest }) => ({
    ...rest,
    bytes: packed(bytes ?? weights),
    measures: measures.map(({ data, ...words }) => ({ ...words, data: packed(data) })),
  });
  const onPass = (token, pass, logits) => {
    seen.choose(token, logits);
    if (first) rows.push(plain(seen.newest()));
    else first = plain(seen.phrase());
  };
  await generate(model, prompt, newTokens, { onPass, trace: (...row) => seen.see(...row) });
  return { first, rows, last: plain(seen.phrase()) };
}"""


def grown(first: dict, rows: list[dict]) -> dict:
    """Add the rows to the first picture one by one, as the grid does."""
    phrase = {**first, "bytes": unpacked(first["bytes"], "u1").copy(), "tokens": [*first["tokens"]]}
    triangles = phrase["bytes"].reshape(len(phrase["layers"]) * len(phrase["heads"]), -1)  # [heads, T (T + 1) / 2]
    for row in rows:
        q = row["q"]
        triangles[:, q * (q + 1) // 2 : (q + 1) * (q + 2) // 2] = unpacked(row["bytes"], "u1").reshape(
            len(triangles), -1
        )
        phrase["tokens"][q + 1] = row["token"]
        phrase["next"][q] = row["next"]
        phrase |= {"known": q + 1, **{name: row[name] for name in ("names", "measures", "sinks")}}
    return phrase


def expect_bytes_within_a_step(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1


def expect_next_tokens(phrase: dict, expected: dict) -> None:
    """Rows of the prompt but the last choose nothing, so that the twin has no logits for them."""
    before = phrase["promptLen"] - 1
    assert phrase["next"][:before] == [[]] * before
    for found, row in zip(phrase["next"][before:], expected["next"][before:], strict=True):
        assert [token for token, _ in found] == [token for token, _ in row]
        assert [p for _, p in found] == pytest.approx([p for _, p in row], abs=1)


def expect_phrase(phrase: dict, expected: dict) -> None:
    of_each = {"weights", "scores", "bytes", "measures", "next", "known"}  # compared below, or of one side only
    assert {key: phrase[key] for key in phrase.keys() - of_each} == {
        key: expected[key] for key in expected.keys() - of_each
    }
    assert (phrase["known"], phrase["scores"]) == (expected["steps"], None)
    for measure, packed in zip(phrase["measures"], expected["measures"], strict=True):
        assert {**measure, "data": None} == {**packed, "data": None}
        expect_bytes_within_a_step(unpacked(measure["data"], "u1"), unpacked(packed["data"], "u1"))


@pytest.mark.parametrize(
    ("text", "new_tokens"), [(PARIS, 5), ("Hello", 1), ("Hello", 4), ("a<|im_end|> 👩\u200d👧\n\t", 3)], ids=repr
)
def test_attention_is_what_python_sends(page, real_model, tokenizer, text, new_tokens):
    seen = observe(real_model, tokenizer, text, new_tokens)
    expected = phrase_data(**vars(seen), names=notable_heads(seen.weights), dtype_name="float32")
    found = page.evaluate(SEEN, [text, new_tokens])
    first, rows = found["first"], found["rows"]
    assert (first["known"], [row["q"] for row in rows]) == (
        seen.prompt_len,
        [*range(seen.prompt_len, expected["steps"])],
    )
    assert first["tokens"][seen.prompt_len + 1 :] == ["…"] * len(rows)  # to come
    phrase = grown(first, rows)
    expect_next_tokens(phrase, expected)
    # a run opens on a head that led a measure of the prompt's rows: at the end another one may
    expect_phrase({**phrase, "open": found["last"]["open"]}, expected)
    expect_phrase(found["last"], expected)
    for sent in (phrase["bytes"], unpacked(found["last"]["bytes"], "u1")):
        expect_bytes_within_a_step(sent, unpacked(expected["weights"], "u1"))


# --- the file


def of_type(tensors: dict, name: str):
    """Return the last tensor of a packing, so that every offset before it counts."""
    return [tensor for tensor in tensors.values() if tensor.tensor_type.name == name and len(tensor.shape) == 2][-1]


@pytest.mark.parametrize("packing", ["Q4_1", "Q8_0"])
def test_a_packed_matrix_is_read_as_gguf_reads_it(page, tensors, packing):
    tensor = of_type(tensors, packing)
    rows = dequantize(tensor.data, tensor.tensor_type)  # [rows, columns]
    chosen = [0, 1, len(rows) // 2, len(rows) - 1]
    found = page.evaluate(
        """([name, chosen]) => {
          const matrix = loaded.tensors.get(name);
          const of = (r) => packed(matrix.unpack(r, new Float32Array(matrix.columns)));
          return [matrix.type, matrix.rows, matrix.columns, chosen.map(of)];
        }""",
        [tensor.name, chosen],
    )
    assert found[:3] == [packing, *rows.shape]
    for r, row in zip(chosen, found[3], strict=True):
        assert (unpacked(row) == rows[r]).all()


def test_a_plain_vector_is_read_as_gguf_reads_it(page, tensors):
    name = "output_norm.weight"
    assert (unpacked(page.evaluate("name => packed(loaded.tensors.get(name))", name)) == tensors[name].data).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [1, 3, 4, 5])
@pytest.mark.parametrize("packing", ["Q4_1", "Q8_0"])
def test_product_is_numpys(page, tensors, packing, n, way):
    tensor = of_type(tensors, packing)
    w = dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
    x = np.random.default_rng(n).normal(size=(n, w.shape[1])).astype(np.float32)
    sent = base64.b64encode(x.tobytes()).decode("ascii")
    code = "([way, name, x, n]) => packed(linear(loaded.tensors.get(name), floats(x), n, loaded.models[way].kernel))"
    found = unpacked(page.evaluate(code, [way, tensor.name, sent, n])).reshape(n, -1)
    expected = x @ w.T  # [n, in] @ [in, out] -> [n, out]
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


READ = """text => {
  try {
    const { fields, tensors } = readGguf(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
    return { fields: Object.fromEntries(fields), tensors: [...tensors].map(([name, values]) => [name, ...values]) };
  } catch (error) {
    return error.message;
  }
}"""


def read(page: Page, data: bytes) -> dict | str:
    return page.evaluate(READ, base64.b64encode(data).decode("ascii"))


def test_a_browser_without_simd_gets_no_kernel(page):
    assert page.evaluate("Kernel.make(Uint8Array.of(0, 97, 115, 109), 10)") is None


def test_fields_of_every_type_are_read(page, tmp_path):
    kind = GGUFValueType
    fields = {
        "u8": (200, kind.UINT8), "i8": (-100, kind.INT8), "u16": (60000, kind.UINT16), "i16": (-30000, kind.INT16),
        "u32": (4 * 10**9, kind.UINT32), "i32": (-(2 * 10**9), kind.INT32), "u64": (2**40, kind.UINT64),
        "i64": (-(2**40), kind.INT64), "f32": (0.5, kind.FLOAT32), "f64": (0.1, kind.FLOAT64), "no": (False, kind.BOOL),
        "text": ("é\n", kind.STRING), "list": (["a", "日"], kind.ARRAY),
    }  # fmt: skip
    tensors = {"x": (np.arange(3, dtype=np.float32), None)}
    found = read(page, written(tmp_path / "x.gguf", fields, tensors, alignment=64))
    assert found["tensors"] == [["x", 0, 1, 2]]
    assert {name: found["fields"][name] for name in fields} == {name: value for name, (value, _) in fields.items()}


@pytest.mark.parametrize("start", [b"", b"GGUF\2\0\0\0", b"PK\3\4\3\0\0\0", b"<!doctype html>"], ids=repr)
def test_what_is_no_model_is_named(page, start):
    assert read(page, start.ljust(64, b"\0")) == "this is no GGUF file of version 3"


def test_a_packing_that_is_not_read_is_named(page, tmp_path):
    data = written(tmp_path / "x.gguf", {}, {"x": (np.zeros((2, 32), np.float16), None)})
    assert read(page, data) == "the tensor x is packed in a way that this page does not read"
