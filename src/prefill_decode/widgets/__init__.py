"""Widgets: Python computes, JavaScript shows. Each is one triplet `<name>.{py,js,css}`."""

from prefill_decode.widgets.attention_grid import AttentionGrid

__all__ = ["AttentionGrid"]
