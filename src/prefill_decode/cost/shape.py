"""The sizes of a model that decide its cost, and what a number takes in each dtype."""

from __future__ import annotations

from dataclasses import dataclass, replace

from prefill_decode.config import Config


@dataclass(frozen=True)
class Dtype:
    """What a number takes, in bits.

    Attributes
    ----------
    weight_bits : int
        Of a stored weight.
    value_bits : int
        Of everything else: keys, values, activations. Integer formats pack the weights only.
    arithmetic : str
        The rate of a device that applies: packed weights are unpacked and multiplied in 16 bits.
    """

    weight_bits: int
    value_bits: int
    arithmetic: str


DTYPES = {
    "float64": Dtype(64, 64, "float64"),
    "float32": Dtype(32, 32, "float32"),
    "float16": Dtype(16, 16, "float16"),
    "bfloat16": Dtype(16, 16, "float16"),
    "float8": Dtype(8, 8, "float8"),  # the cache too, as engines do that multiply in 8 bits
    "int8": Dtype(8, 16, "float16"),
    "int4": Dtype(4, 16, "float16"),
}


SHORT_NAMES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "float8"}


def dtype_of(name: object) -> Dtype:
    """Return what is known of a dtype, given by name or as a NumPy dtype; the error lists the known names."""
    key = getattr(name, "__name__", str(name)).lower()  # np.float32 is a class, np.dtype("float32") prints its name
    key = SHORT_NAMES.get(key, key)
    if key not in DTYPES:
        raise ValueError(f"unknown dtype {key!r}: expected one of {', '.join(DTYPES)}")
    return DTYPES[key]


def bytes_of(count: int, bits: int) -> int:
    """Return the bytes of so many numbers, a started byte counted whole."""
    return -(-count * bits // 8)


@dataclass(frozen=True)
class Shape:
    """Name the sizes that decide what a pass costs; nothing here knows a weight.

    Attributes
    ----------
    d_model, layers, heads, kv_heads, d_head, d_ff, vocab : int
        As in ``Config``, whose names have an ``n_``.
    mlp_matrices : {2, 3}
        Up and down, or gate, up and down (SwiGLU).
    tied_head : bool
        The head is the embedding's own matrix. An embedding of its own is looked up and never multiplied.
    latent_kv : int, optional
        Numbers that a layer keeps of a position instead of keys and values (DeepSeek-V2's latent attention). Such a
        shape is for its cache alone: its experts and projections are not counted here.
    vectors : int
        Numbers in norm gains and biases: read by every pass, multiplied by no matrix product.
    positions : int
        Rows of a learned position table, looked up like the embedding.

    Raises
    ------
    ValueError
        If a size is not positive, the heads cannot be shared out, or there are neither 2 nor 3 feed-forward matrices.
    """

    d_model: int
    layers: int
    heads: int
    kv_heads: int
    d_head: int
    d_ff: int
    vocab: int
    mlp_matrices: int = 3
    tied_head: bool = True
    latent_kv: int | None = None
    vectors: int = 0
    positions: int = 0

    def __post_init__(self) -> None:
        for name in ("d_model", "layers", "heads", "kv_heads", "d_head", "d_ff", "vocab"):
            if getattr(self, name) < 1 and not (name == "d_ff" and self.latent_kv):
                raise ValueError(f"{name} = {getattr(self, name)}: expected at least 1")
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} query heads cannot share {self.kv_heads} KV heads: give a multiple")
        if self.mlp_matrices not in (2, 3):
            raise ValueError(f"mlp_matrices = {self.mlp_matrices}: expected 2 (up, down) or 3 (gate, up, down)")

    @classmethod
    def of(cls, config: Config) -> Shape:
        """Return the shape of a decoder of this book: SwiGLU, tied head, two norms a layer and one at the end."""
        return cls(
            d_model=config.d_model,
            layers=config.n_layers,
            heads=config.n_heads,
            kv_heads=config.n_kv_heads,
            d_head=config.d_head,
            d_ff=config.d_ff,
            vocab=config.vocab_size,
            vectors=(2 * config.n_layers + 1) * config.d_model,
        )

    @property
    def matrices(self) -> dict[str, int]:
        """Numbers in the weight matrices that a pass multiplies by, all layers together: ``q k v o ffn head``."""
        if self.latent_kv is not None:
            raise ValueError(
                "a shape with a latent cache is for its cache alone: ask kv_bytes, nothing else is counted"
            )
        query, kv = self.heads * self.d_head, self.kv_heads * self.d_head
        return {
            "q": self.layers * self.d_model * query,
            "k": self.layers * self.d_model * kv,
            "v": self.layers * self.d_model * kv,
            "o": self.layers * query * self.d_model,
            "ffn": self.layers * self.mlp_matrices * self.d_model * self.d_ff,
            "head": self.d_model * self.vocab,
        }

    @property
    def params(self) -> int:
        """All parameters; a tied matrix counts once."""
        looked_up = (0 if self.tied_head else self.vocab) + self.positions
        return self.params_read + looked_up * self.d_model

    @property
    def params_read(self) -> int:
        """Parameters that one pass reads whole: the matrices of its products, norm gains and biases."""
        return sum(self.matrices.values()) + self.vectors

    @property
    def kv_numbers(self) -> int:
        """Numbers that the cache keeps of one position, all layers together."""
        return self.layers * (self.latent_kv or 2 * self.kv_heads * self.d_head)

    def kv_bytes(self, entries: int, dtype: object = "float16") -> int:
        """Return the bytes of a cache: 2 · layers · KV heads · head width · bytes a number · entries."""
        return bytes_of(self.kv_numbers * entries, dtype_of(dtype).value_bits)

    def weight_bytes(self, dtype: object = "float16") -> int:
        """Return the bytes that all parameters take on a device."""
        return bytes_of(self.params, dtype_of(dtype).weight_bits)

    def scaled(self, params: float) -> Shape:
        """Return a shape of about so many parameters for a model not known: depth and widths grow by one factor."""
        grown, factor = self, 1.0
        for _ in range(20):  # what grows with the third power of the factor and what with the first settles quickly
            factor *= (params / grown.params) ** (1 / 3)
            grown = self._grown(factor)
        return grown

    def _grown(self, factor: float) -> Shape:
        kv_heads = max(1, round(self.kv_heads * factor))
        return replace(
            self,
            layers=max(1, round(self.layers * factor)),
            d_model=max(1, round(self.d_model * factor)),
            heads=kv_heads * (self.heads // self.kv_heads),
            kv_heads=kv_heads,
            d_ff=max(1, round(self.d_ff * factor)),
            vectors=round(self.vectors * factor**2),
        )
