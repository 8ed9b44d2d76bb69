"""One oracle, many schedules: the same logits by other routes, and what each route costs.

One module a concern, each using the ones before it::

    passes       rows of one prompt over several passes
    masks        who may read whom when prompts, pads or pages share an array
    batches      several prompts in one pass: padded, packed
"""

from .batches import packed_batch, padded_batch
from .passes import chunked_prefill, last_layer_for_one_row, prefill_then_decode

__all__ = [
    "chunked_prefill",
    "last_layer_for_one_row",
    "packed_batch",
    "padded_batch",
    "prefill_then_decode",
]
