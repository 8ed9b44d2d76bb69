"""Widgets: Python computes, JavaScript shows. Each is one triplet `<name>.{py,js,css}`."""

from prefill_decode.widgets.attention_grid import AttentionGrid
from prefill_decode.widgets.prompt_explorer import PromptExplorer

__all__ = ["AttentionGrid", "PromptExplorer"]
