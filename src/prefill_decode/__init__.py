"""Prefill and decode of a language model, in NumPy, with the widgets and figures that show them."""
