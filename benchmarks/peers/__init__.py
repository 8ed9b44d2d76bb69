"""Other engines on the same weights, in an environment of their own: `python -m benchmarks peers` sets it up."""

from benchmarks.peers.contest import measure

__all__ = ["measure"]
