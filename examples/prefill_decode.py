"""What a language model does before its first word, and between two words, in one file: prefill and decode.

Prefill is one pass over all tokens of the prompt. Decode is one pass for each further token: it computes one row and
reads the keys and values kept from before. First comes the model, then seven experiments, checked and then printed.
The model has the parts of a real one (RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied head) and fixed
random weights, so its tokens mean nothing. The simple version leaves out: trained weights and a tokenizer; batches and
padding; attention in blocks of rows; most checks of the input; sampling and stop tokens; all timing.
"""

from fractions import Fraction
from types import SimpleNamespace as Model

import numpy as np

N_LAYERS, D_MODEL, D_FF, VOCAB = 2, 8, 12, 16  # d_model: numbers that stand for one token between two layers
N_HEADS, N_KV_HEADS, D_HEAD = 4, 2, 4  # h, h_kv, d: each head of keys and values serves two query heads
PROMPT = [3, 14, 1, 5]  # token ids. In the shapes below: n tokens in a pass, L queries, S keys


def build_model(seed: int) -> Model:
    """Draw the weights once: odd numbers divided by 16, the same on every machine. No pass writes to them."""
    rng, layer_in, d_q, d_kv = np.random.default_rng(seed), (N_LAYERS, D_MODEL), N_HEADS * D_HEAD, N_KV_HEADS * D_HEAD
    shapes = {"q": (*layer_in, d_q), "k": (*layer_in, d_kv), "v": (*layer_in, d_kv), "out": (N_LAYERS, d_q, D_MODEL)}
    shapes |= {"gate": (*layer_in, D_FF), "up": (*layer_in, D_FF), "down": (N_LAYERS, D_FF, D_MODEL)}
    shapes |= {"attention_gain": layer_in, "ffn_gain": layer_in, "final_gain": D_MODEL, "embedding": (VOCAB, D_MODEL)}
    return Model(**{name: (2 * rng.integers(-16, 16, shape) + 1) / 16 for name, shape in shapes.items()})


def causal_mask(n_queries: int, n_keys: int) -> np.ndarray:
    """Allow each query its own key and all earlier ones; the queries are the last of the n_keys positions."""
    return np.tri(n_queries, n_keys, n_keys - n_queries, dtype=bool)  # [L, S], the diagonal starts at S - L


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Average the values of the allowed keys: [h, L, d], [h_kv, S, d], [h_kv, S, d], [L, S] -> [h, L, d]."""
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))  # [h_kv, S, d] -> [h, S, d]
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])  # [h, L, d] @ [h, d, S] -> [h, L, S]
    scores = np.where(mask, scores, -np.inf)  # exp(-inf) is exactly 0: a masked key has no influence at all
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-1e300))  # the largest is exp(0) = 1
    weights /= np.maximum(weights.sum(axis=-1, keepdims=True), 1)  # below 1 only without any key: then 0, not NaN
    return weights @ v  # [h, L, S] @ [h, S, d] -> [h, L, d]


def rms_norm(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Scale each row to a mean square of 1, then each of its numbers by its gain."""
    return gain * x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-5)


def rotary(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Turn pairs of numbers by angles that grow with the position, so that scores depend on distances."""
    left, right = np.split(x, 2, axis=-1)  # [h, n, d] -> 2 x [h, n, d/2]
    speeds = 10_000.0 ** -np.linspace(0, 1, left.shape[-1], endpoint=False)  # [d/2]
    cos, sin = np.cos(np.outer(positions, speeds)), np.sin(np.outer(positions, speeds))  # [n], [d/2] -> [n, d/2]
    return np.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)  # 2 x [h, n, d/2] -> [h, n, d]


def swiglu(x: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Transform each row by itself: this layer mixes no positions."""
    gates = x @ gate  # [n, d_model] @ [d_model, d_ff] -> [n, d_ff]
    return (gates / (1 + np.exp(-gates)) * (x @ up)) @ down  # [n, d_ff] @ [d_ff, d_model] -> [n, d_model]


class KVCache:
    """Keys and values of all past positions. Queries are not kept: each is used once, by its own row."""

    def __init__(self, capacity: int) -> None:
        self.k, self.v = np.zeros((2, N_LAYERS, N_KV_HEADS, capacity, D_HEAD))
        self.used = [0] * N_LAYERS  # positions written, layer by layer

    def __len__(self) -> int:
        return self.used[-1]  # the last layer is written last

    def extend(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Append the keys and values of new positions; return those of all positions so far."""
        start, end = self.used[layer], self.used[layer] + k.shape[1]
        if end > self.k.shape[2]:
            raise ValueError(f"the cache has {self.k.shape[2]} places, this pass needs {end}: make a larger KVCache")
        self.k[layer, :, start:end], self.v[layer, :, start:end], self.used[layer] = k, v, end
        return self.k[layer, :, :end], self.v[layer, :, :end]  # [h_kv, L, d] -> [h_kv, S, d]


def forward(model: Model, ids: list[int], cache: KVCache | None = None, logits: str = "all", trace=None) -> np.ndarray:
    """Run one pass over ids, which continue the cache: logits [n, vocab], or [vocab] of the "last" position."""
    n, past = len(ids), 0 if cache is None else len(cache)
    positions, mask = past + np.arange(n), causal_mask(n, past + n)  # [n], [n, past + n]
    x = model.embedding[ids]  # [n] -> [n, d_model]
    for layer in range(N_LAYERS):
        normed = rms_norm(x, model.attention_gain[layer])
        q, k, v = (normed @ w[layer] for w in (model.q, model.k, model.v))  # [n, d_model] @ [d_model, h*d] -> [n, h*d]
        q, k, v = (y.reshape(n, -1, D_HEAD).swapaxes(0, 1) for y in (q, k, v))  # [n, h*d] -> [h, n, d]
        q, k = rotary(q, positions), rotary(k, positions)
        if cache is not None:
            k, v = cache.extend(layer, k, v)  # [h_kv, n, d] -> [h_kv, past + n, d]
        heads = np.concatenate(attention(q, k, v, mask), axis=-1)  # [h, n, d] -> [n, h*d]
        x = x + heads @ model.out[layer]  # [n, h*d] @ [h*d, d_model] -> [n, d_model]
        x = x + swiglu(rms_norm(x, model.ffn_gain[layer]), model.gate[layer], model.up[layer], model.down[layer])
    if trace is not None:
        trace.append(mask)  # the mask that was used, to be counted
    x = x[-1] if logits == "last" else x  # [n, d_model] -> [d_model]; a real head is large: one row is enough
    return rms_norm(x, model.final_gain) @ model.embedding.T  # [.., d_model] @ [d_model, vocab] -> [.., vocab]


def prefill(model: Model, ids: list[int], cache: KVCache, trace: list | None = None) -> np.ndarray:
    """Process all positions of the prompt in one pass."""
    return forward(model, ids, cache, "last", trace)  # [n] -> [vocab]


def decode_step(model: Model, token: int, cache: KVCache, trace: list | None = None) -> np.ndarray:
    """Process one more position: one query row."""
    return forward(model, [token], cache, "last", trace)  # [1] -> [vocab]


def generate(model: Model, ids: list[int], max_new_tokens: int, use_cache: bool = True) -> tuple[list, list, int]:
    """Choose new tokens; return all ids, the mask of each pass and the number of positions in the cache."""
    ids, trace, cache = list(ids), [], KVCache(len(ids) + max_new_tokens - 1)  # the last token is never fed back
    for step in range(max_new_tokens):
        if not use_cache:
            logits = forward(model, ids, None, "last", trace)  # all positions again, in every pass
        else:
            logits = decode_step(model, ids[-1], cache, trace) if step else prefill(model, ids, cache, trace)
        ids.append(int(logits.argmax()))
    return ids, trace, len(cache)


def verify(holds: bool, claim: str) -> None:
    """Print a claim, but only if it holds."""
    if not holds:
        raise AssertionError(claim)
    print("  verified:", claim)


def verify_equal(a: np.ndarray, b: np.ndarray, claim: str) -> None:
    """Allow a difference below 1e-12. Print the next power of ten above it: more digits change with the processor."""
    largest = np.abs(np.subtract(a, b)).max()
    verify(largest < 1e-12, f"{claim} (difference below 1e{np.floor(np.log10(max(largest, 2e-13))) + 1:.0f})")


print("1. One attention call by hand: 4 tokens, d = 4, scores in steps of ln 2 (one step more, twice the weight)")
steps = np.array([[0, 2, 1, 3], [1, 1, 3, 0], [1, 0, 0, 2], [0, 0, 0, 0]])
values = np.array([[8, 0, 4, 0], [0, 8, 4, 4], [4, 4, 0, 8], [0, 4, 8, 4]])
by_hand = np.array([[8, 0, 4, 0], [4, 4, 4, 2], [5, 3, 3, 3], [3, 4, 4, 4]])
shares = np.array([[4, 0, 0, 0], [2, 2, 0, 0], [2, 1, 1, 0], [1, 1, 1, 1]]) / 4  # by hand as well: the weights
q, k, v = 2 * np.log(2) * steps[None], np.eye(4)[None], values[None]  # [1, 4, 4]; q_i k_j / sqrt(4) = steps[i, j] ln 2
weights, output = (attention(q, k, x, causal_mask(4, 4))[0] for x in (k, v))  # one-hot values give the weights back
for i in range(4):
    cells = [f"{Fraction(w).limit_denominator(99)!s:>4}" for w in weights[i, : i + 1]] + ["   ."] * (3 - i)
    print(f"  query {i}: weights", *cells, "  output", *(f"{x:.0f}" for x in output[i]))
verify_equal([weights, output], [shares, by_hand], "weights and outputs are those found with a pencil")
heads = attention(np.repeat(q, 4, axis=0), np.concatenate([k, 0 * k]), np.concatenate([v, -v]), causal_mask(4, 4))
means = np.cumsum(values, axis=0) / np.arange(1, 5)[:, None]  # keys of zero: equal weights, plain averages
verify_equal(heads, [by_hand, by_hand, -means, -means], "query heads 0 and 1 share KV head 0; 2 and 3 share KV head 1")

print("\n2. Prefill: one pass over a prompt of n = 4 tokens")
model, cache, trace, n = build_model(115), KVCache(8), [], len(PROMPT)
logits = prefill(model, PROMPT, cache, trace)
verify(trace[0].sum() == n * (n + 1) // 2 == 10, "1 + 2 + 3 + 4 = n(n + 1)/2 = 10 pairs per query head and layer")
written = np.any([cache.k, cache.v], axis=-1).sum(axis=-1)  # [2, layers, h_kv, capacity, d] -> [2, layers, h_kv]
verify((written == n).all(), "every layer holds 4 keys and 4 values for each KV head")
verify_equal(logits, forward(model, PROMPT)[-1], f"only the last row's logits choose the next token, {logits.argmax()}")

print("\n3. Decode: one pass over the token just chosen")
decode_step(model, int(logits.argmax()), cache, trace)
verify(trace[1].shape == (1, n + 1) and trace[1].sum() == 5, "one query row reads n + 1 = 5 keys, its own included")
triangle = np.vstack([np.pad(trace[0], ((0, 0), (0, 1))), trace[1]])  # [n, n], [1, n + 1] -> [n + 1, n + 1]
for phase, row in zip(["prefill"] * n + ["decode"], triangle, strict=True):
    print(f"  {phase:7}", *(phase[0] if allowed else "." for allowed in row))
verify(np.array_equal(triangle, causal_mask(5, 5)) and triangle.sum() == 15, "10 + 5 = 15: one triangle of 5 rows")

print("\n4. Cached equals uncached: 8 tokens, cut into prompt and rest at every place")
ids, rows = [3, 14, 1, 5, 9, 2, 6, 11], []
for cut in range(1, 8):  # 7 cuts, the rest one by one and at once: 14 times the 8 positions
    one_by_one, at_once = KVCache(8), KVCache(8)
    rows += [*forward(model, ids[:cut], one_by_one), *(decode_step(model, token, one_by_one) for token in ids[cut:])]
    rows += [*forward(model, ids[:cut], at_once), *forward(model, ids[cut:], at_once)]  # lists of rows [vocab]
verify_equal(np.reshape(rows, (14, 8, VOCAB)), forward(model, ids), "every position has the logits of one full pass")

print("\n5. Bookkeeping: m = 6 new tokens after P = 4")
(ids, cached, held), (ids_again, full, _) = (generate(model, PROMPT, 6, use_cache) for use_cache in (True, False))
for i, (a, b) in enumerate(zip(cached, full, strict=True), start=1):
    print(f"  pass {i}: rows {len(a)}, pairs {a.sum():2}; without a cache: rows {len(b)}, pairs {b.sum():2}")
rows, pairs = ([sum(map(count, masks)) for masks in (cached, full)] for count in (len, np.sum))
verify([len(mask) for mask in cached] == [4, 1, 1, 1, 1, 1], "m passes: 1 prefill and m - 1 = 5 decode")
verify(held == 4 + 6 - 1, "P + m - 1 = 9 = T positions in the cache: the token chosen last was not fed back")
verify(rows == [9, sum(range(4, 10))], "rows: T = 9 with the cache, 4 + 5 + .. + 9 = 39 without")
verify(pairs == [9 * 10 // 2, 155], "pairs: T(T + 1)/2 = 45 with the cache, 10 + 15 + .. + 45 = 155 without")
verify(ids == ids_again, f"the same tokens either way: {ids[4:]}")

print("\n6. Why the cache stays valid: change the last token of the prompt")
before, after = KVCache(4), KVCache(4)
for cache, last in ((before, 5), (after, 7)):
    prefill(model, [*PROMPT[:3], last], cache)
same = (before.k == after.k) & (before.v == after.v)  # [layers, h_kv, n, d]
verify(same[:, :, :3].all() and not same[:, :, 3].any(), "not one bit of an earlier key or value changes (exact here)")

print("\n7. What equality does not prove: shift the mask by one, so that no query reads its own key")
late = np.tri(4, 4, -1, dtype=bool)
full, first = attention(q, k, v, late)[0], attention(q[:, :3], k[:, :3], v[:, :3], late[:3, :3])[0]
verify_equal([*first, *attention(q[:, 3:], k, v, late[3:])[0]], full, "cached still equals uncached")
verify(np.array_equal(full[1], values[0]), "and both are wrong: query 1 outputs 8 0 4 0, the pencil says 4 4 4 2")
