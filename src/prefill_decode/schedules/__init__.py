"""One oracle, many schedules: the same logits by other routes, and what each route costs.

One module a concern, each using the ones before it::

    passes       rows of one prompt over several passes
    masks        who may read whom when prompts, pads or pages share an array
    batches      several prompts in one pass: padded, packed
    pool         memory in blocks
    paged        a cache in blocks of a pool, with a page table
    prefix       blocks of a common beginning, used again
    speculative  guesses of a draft, checked several a pass
"""

from .batches import packed_batch, padded_batch
from .paged import PagedKVCache
from .passes import chunked_prefill, last_layer_for_one_row, prefill_then_decode
from .pool import BlockPool
from .prefix import PrefixCache
from .speculative import prompt_lookup, speculative_generate

__all__ = [
    "BlockPool",
    "PagedKVCache",
    "PrefixCache",
    "chunked_prefill",
    "last_layer_for_one_row",
    "packed_batch",
    "padded_batch",
    "prefill_then_decode",
    "prompt_lookup",
    "speculative_generate",
]
