"""Widgets: Python computes, JavaScript shows. Each is one triplet `<name>.{py,js,css}`."""

from prefill_decode.widgets.attention_grid import AttentionGrid
from prefill_decode.widgets.attention_grid_questions import GridQuestion
from prefill_decode.widgets.cache_compressor import CacheCompressor
from prefill_decode.widgets.ledger_table import LedgerTable
from prefill_decode.widgets.mask_gallery import MaskGallery
from prefill_decode.widgets.pass_timeline import PassTimeline
from prefill_decode.widgets.prompt_explorer import PromptExplorer
from prefill_decode.widgets.roofline import Roofline
from prefill_decode.widgets.tile_sweep import TileSweep
from prefill_decode.widgets.token_sampler import TokenSampler
from prefill_decode.widgets.your_phrase import YourPhrase

__all__ = [
    "AttentionGrid",
    "CacheCompressor",
    "GridQuestion",
    "LedgerTable",
    "MaskGallery",
    "PassTimeline",
    "PromptExplorer",
    "Roofline",
    "TileSweep",
    "TokenSampler",
    "YourPhrase",
]
