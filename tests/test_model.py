"""The decoder: parts against plain formulas, caching against no caching, the real model against its reference."""

import copy
import dataclasses
import itertools

import numpy as np
import pytest
from reference import reference_cases

from prefill_decode import model as decoder
from prefill_decode import smollm2, toy
from prefill_decode.attention import causal_mask
from prefill_decode.cache import KVCache
from prefill_decode.compression import QuantizedKVCache, RoundedKVCache, WindowKVCache
from prefill_decode.generate import generate
from prefill_decode.model import Trace, decode_step, forward, prefill
from prefill_decode.schedules import PagedKVCache

PROMPT = [1, 9, 3, 13, 8, 2, 5, 6]  # eight words of the toy


def cache_for(model, capacity=32):
    return KVCache(model.config, capacity, model.dtype)


def plain_logits(model, ids):
    """Compute every position of the toy with loops and Python lists of rows: no batching, no fused parts, no cache."""
    c = model.config
    x = [model.embedding[i] for i in ids]

    def norm(row, weight):
        return row / np.sqrt((row**2).sum() / len(row) + c.norm_eps) * weight

    def turn(row, position):
        half = c.d_head // 2
        out = np.empty_like(row)
        for i in range(half):
            angle = position / c.rope_theta ** (2 * i / c.d_head)
            z = complex(row[i], row[i + half]) * np.exp(1j * angle)
            out[i], out[i + half] = z.real, z.imag
        return out

    for layer in model.layers:
        queries, keys, values = [], [], []
        for position, row in enumerate(x):
            vectors = (layer.qkv @ norm(row, layer.attention_norm)).reshape(-1, c.d_head)
            queries.append([turn(u, position) for u in vectors[: c.n_heads]])
            keys.append([turn(u, position) for u in vectors[c.n_heads : c.n_heads + c.n_kv_heads]])
            values.append(vectors[c.n_heads + c.n_kv_heads :])
        for i in range(len(x)):
            mixed = []
            for head in range(c.n_heads):
                shared = head * c.n_kv_heads // c.n_heads
                e = [np.exp(queries[i][head] @ keys[j][shared] / c.d_head**0.5) for j in range(i + 1)]
                mixed.append(sum(a * values[j][shared] for j, a in enumerate(e)) / sum(e))
            x[i] = x[i] + layer.output @ np.concatenate(mixed)
        for i, row in enumerate(x):
            gate, up = np.split(layer.gate_up @ norm(row, layer.ffn_norm), 2)
            x[i] = row + layer.down @ (gate / (1 + np.exp(-gate)) * up)
    return np.array([model.embedding @ norm(row, model.norm) for row in x])


def test_every_position_equals_the_plain_formulas(toy_model):
    np.testing.assert_allclose(forward(toy_model, PROMPT), plain_logits(toy_model, PROMPT), atol=1e-12)


@pytest.mark.parametrize("n", range(1, 9))
def test_prefill_and_decode_equal_one_full_pass_for_every_split(toy_model, n):
    ids = PROMPT[:n]
    full = forward(toy_model, ids)  # [n, V]
    for split in range(1, n + 1):
        cache = cache_for(toy_model)
        rows = [forward(toy_model, ids[:split], cache)]  # [split, V]
        rows += [decode_step(toy_model, token, cache)[None] for token in ids[split:]]
        assert np.abs(np.concatenate(rows) - full).max() <= 1e-12
        assert len(cache) == n


@pytest.mark.parametrize("start", range(1, 8))
def test_several_new_rows_on_top_of_a_cache(toy_model, start):
    cache = cache_for(toy_model)
    prefill(toy_model, PROMPT[:start], cache)
    rows = forward(toy_model, PROMPT[start:], cache)
    assert np.abs(rows - forward(toy_model, PROMPT)[start:]).max() <= 1e-12


def test_last_is_the_last_row(toy_model):
    rows = forward(toy_model, PROMPT)
    assert np.abs(forward(toy_model, PROMPT, logits="last") - rows[-1]).max() <= 1e-13
    assert np.abs(prefill(toy_model, PROMPT, cache_for(toy_model)) - rows[-1]).max() <= 1e-13


def test_old_positions_do_not_depend_on_later_tokens(toy_model):
    caches = [cache_for(toy_model) for _ in range(2)]
    for cache, last in zip(caches, (6, 7), strict=True):
        prefill(toy_model, [*PROMPT[:-1], last], cache)
    config, empty = toy_model.config, np.zeros((toy_model.config.n_kv_heads, 0, toy_model.config.d_head))
    for layer in range(config.n_layers):
        (k, v), (k2, v2) = (cache.extend(layer, empty, empty) for cache in caches)
        np.testing.assert_array_equal(k[:, :-1], k2[:, :-1])
        np.testing.assert_array_equal(v[:, :-1], v2[:, :-1])
        assert np.abs(k[:, -1] - k2[:, -1]).max() > 1e-3


def test_the_weights_are_fixed(toy_model):
    before = toy_model.fingerprint()
    generate(toy_model, PROMPT, 4)
    assert toy_model.fingerprint() == before
    bent = dataclasses.replace(toy_model, norm=np.nextafter(toy_model.norm, 9))
    assert bent.fingerprint() != before


def test_the_trace_holds_every_layer(toy_model):
    trace = Trace()
    forward(toy_model, PROMPT, trace=trace)
    c = toy_model.config
    assert [w.shape for w in trace.weights] == [(c.n_heads, 8, 8)] * c.n_layers
    assert [x.shape for x in trace.hidden] == [(8, c.d_model)] * c.n_layers
    last = decoder.rms_norm(trace.hidden[-1], toy_model.norm, c.norm_eps) @ toy_model.embedding.T
    np.testing.assert_allclose(last, forward(toy_model, PROMPT), atol=1e-13)


def test_toy_logits_are_never_tied(toy_model):
    rng = np.random.default_rng(3)
    for _ in range(50):
        top = np.sort(forward(toy_model, rng.integers(0, 16, rng.integers(1, 33))), axis=-1)
        assert (np.diff(top, axis=-1) > 0).all()


class WindowCache:
    """Keep the last ``window`` entries: what a cache of another kind has to answer, and nothing more."""

    def __init__(self, window, n_layers):
        self.window, self.next_position, self.evicts = window, 0, True
        self.kv = [None] * n_layers

    def __len__(self):
        return 0 if self.kv[0] is None else self.kv[0].shape[2]

    def mask(self, n_queries):
        seen = self.next_position - len(self) + np.arange(len(self) + n_queries)  # position of every key
        own = self.next_position + np.arange(n_queries)[:, None]
        return (seen <= own) & (seen > own - self.window)

    def extend(self, layer, k, v):
        new = np.stack([k, v])
        both = new if self.kv[layer] is None else np.concatenate([self.kv[layer], new], axis=2)
        self.kv[layer] = both[:, :, -self.window :]
        if layer == len(self.kv) - 1:
            self.next_position += k.shape[1]
        return both[0], both[1]


def kept_after_every_interrupt(model, cache):
    """Interrupt a pass of 2 rows at each of its operations in turn; yield the cache after it."""
    for last in itertools.count():
        left = itertools.count()

        def rounded(x, left=left, last=last):
            if next(left) == last:
                raise KeyboardInterrupt
            return x

        twin = copy.deepcopy(cache)
        try:
            forward(dataclasses.replace(model, rounded=rounded), PROMPT[6:], twin)
        except KeyboardInterrupt:
            yield twin
        else:
            return


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda c: KVCache(c, 8, np.float64), 1e-12),
        (lambda c: RoundedKVCache(c, 8, np.float64), 1e-12),
        (lambda c: PagedKVCache(c, 2, 4, np.float64), 1e-12),
        (lambda c: QuantizedKVCache(c, np.float64, bits=8, group=4, residual=0), 0.5),  # quantised, it stays so
    ],
)
def test_an_interrupt_anywhere_takes_the_rows_back(toy_model, make, most):
    cache, whole = make(toy_model.config), make(toy_model.config)
    forward(toy_model, PROMPT[:6], cache)
    forward(toy_model, PROMPT[:6], whole)
    expected = forward(toy_model, PROMPT[6:], whole)
    interrupted = list(kept_after_every_interrupt(toy_model, cache))
    assert len(interrupted) > 30  # the operations of a pass, the head's among them
    for kept in interrupted:
        assert len(kept) == kept.next_position == 6
        assert np.abs(forward(toy_model, PROMPT[6:], kept) - expected).max() < most


@pytest.mark.parametrize(("n", "before", "after"), [(6, (4, 6), (4, 8)), (3, (3, 3), (4, 5))])
def test_what_evicts_has_all_rows_of_an_interrupted_pass_or_none(toy_model, n, before, after):
    cache = WindowKVCache(toy_model.config, 4, np.float64, sinks=1)
    forward(toy_model, PROMPT[:n], cache)
    ends = [(len(kept), kept.next_position) for kept in kept_after_every_interrupt(toy_model, cache)]
    assert set(ends) == {before, after}
    assert ends == sorted(ends)


@pytest.mark.parametrize("chunks", [[8], [1] * 8, [3, 4, 1], [5, 1, 1, 1]])
def test_a_window_cache_needs_no_change_in_forward(toy_model, chunks):
    cache, rows, start = WindowCache(3, toy_model.config.n_layers), [], 0
    for size in chunks:
        rows.append(forward(toy_model, PROMPT[start : start + size], cache))
        start += size
    band = np.tri(8, 8, 0, dtype=bool) & ~np.tri(8, 8, -3, dtype=bool)  # own key and the two before it
    assert np.abs(np.concatenate(rows) - forward(toy_model, PROMPT, mask=band)).max() <= 1e-12
    assert len(cache) == 3


def test_a_packed_call_needs_no_change_in_forward(toy_model):
    first, second = PROMPT[:3], PROMPT[3:]
    mask = np.zeros((8, 8), bool)
    mask[:3, :3], mask[3:, 3:] = causal_mask(3, 3), causal_mask(5, 5)
    rows = forward(toy_model, first + second, mask=mask, positions=np.r_[0:3, 0:5])
    assert np.abs(rows[:3] - forward(toy_model, first)).max() <= 1e-12
    assert np.abs(rows[3:] - forward(toy_model, second)).max() <= 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: forward(m, []), "there is no token to run"),
        (lambda m: forward(m, [[1, 2]]), "flat sequence"),
        (lambda m: forward(m, [1.5]), "expected integers"),
        (lambda m: forward(m, [3, 16]), "token id 16 is outside the vocabulary: expected 0 to 15"),
        (lambda m: forward(m, [-1]), "token id -1 is outside"),
        (lambda m: forward(m, [1], logits="first"), '"all" .* or "last"'),
        (lambda m: forward(m, [1, 2], positions=[0]), r"positions are \(1,\) for 2 tokens"),
        (lambda m: forward(m, [1, 2], mask=causal_mask(1, 2)), r"expected \[L, S\] = \(2, 2\)"),
        (lambda m: dataclasses.replace(m.config, n_kv_heads=3), "4 is not a multiple of n_kv_heads = 3"),
        (lambda m: dataclasses.replace(m.config, d_head=3), "d_head = 3 is odd"),
    ],
)
def test_what_does_not_fit_is_named(toy_model, call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call(toy_model)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", reference_cases(), ids=lambda case: case["name"])
def test_reference_cases(real_model, tokenizer, case):
    ids = tokenizer.chat(case["text"]) if case.get("chat") else tokenizer.encode(case["text"])
    assert ids == case["ids"]
    last = forward(real_model, ids, logits="last")
    order = np.argsort(-last)[:5]
    assert order.tolist() == case["top5_ids"]
    np.testing.assert_allclose(last[order], case["top5_logits"], atol=2e-3)
    greedy = case["greedy24"]
    cached = generate(real_model, ids, len(greedy))
    assert cached.new_ids == greedy
    if "greedy24_text" in case:
        assert tokenizer.decode(cached.new_ids) == case["greedy24_text"]


def test_the_real_model_without_a_cache_says_the_same(real_model, tokenizer):
    ids = tokenizer.encode("The capital of France is")
    assert generate(real_model, ids, 6, use_cache=False).ids == generate(real_model, ids, 6).ids


@pytest.mark.parametrize(("fixture", "tolerance"), [("real_model64", 1e-11), ("real_model", 1e-3)])
def test_the_real_model_prefill_and_decode_equal_one_full_pass(request, tokenizer, fixture, tolerance):
    model = request.getfixturevalue(fixture)
    ids = tokenizer.encode("def fibonacci(n):\n    return")
    full = forward(model, ids)
    for split in (1, 4, len(ids) - 1):
        cache = cache_for(model)
        rows = [forward(model, ids[:split], cache)]
        rows += [decode_step(model, token, cache)[None] for token in ids[split:]]
        assert np.abs(np.concatenate(rows) - full).max() < tolerance


def test_the_real_configuration(real_model):
    c = real_model.config
    assert (c.n_layers, c.d_model, c.n_heads, c.n_kv_heads, c.d_head, c.d_ff) == (30, 576, 9, 3, 64, 1536)
    assert (c.vocab_size, c.n_ctx, c.rope_theta, round(c.norm_eps, 9)) == (49152, 8192, 100000, 1e-5)
    assert real_model.n_params == 134_515_008
    assert toy.CONFIG.d_model != toy.CONFIG.n_heads * toy.CONFIG.d_head  # the toy would show a mix-up of the two
    assert smollm2.STOP_IDS == (0, 2)
