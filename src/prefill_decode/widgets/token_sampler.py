"""`TokenSampler`: real logits in, temperature and filters in an order of one's choice, a draw from what is left."""

from collections.abc import Sequence
from pathlib import Path

import anywidget
import numpy as np
import traitlets

from prefill_decode.widgets.modules import module
from prefill_decode.widgets.page_only import for_page
from prefill_decode.widgets.quantities import count
from prefill_decode.widgets.token_sampler_data import CHOICES, Choice, sampler_data
from prefill_decode.widgets.token_sampler_html import picture
from prefill_decode.widgets.token_sampler_reading import read
from prefill_decode.widgets.token_sampler_words import questions

HERE = Path(__file__).parent


class TokenSampler(anywidget.AnyWidget):
    """Set temperature, top-k, top-p, min-p and their order; see what is kept, and draw from it.

    Parameters
    ----------
    logits : ndarray, [V]
        Of one position, before any filter.
    tokens : sequence of str
        The text of each token, as `SmolTokenizer.tokens` returns it.
    phrase : str
        What the logits follow.
    **opened : float, int, str or None
        The setting that it opens with, by the names of `Choice`.

    Raises
    ------
    ValueError
        If tokens do not fit the logits, these are not finite or fewer than 2, or a setting is not offered.

    Notes
    -----
    The page shows the 50 likeliest tokens and has their logits. What a setting keeps of the rest is computed here for
    all that is offered. A draw goes through the tokens in the order of ids, as `sampling.draw` does. A page takes about
    18 kB (gzipped) where the model is sure, and several times that where its distribution is flat.
    """

    _esm = module("token_sampler")
    _css = (HERE / "theme.css").read_text("utf-8") + (HERE / "token_sampler.css").read_text("utf-8")

    data = traitlets.Dict().tag(sync=True)
    markup = traitlets.Unicode().tag(sync=True)
    temperature = traitlets.Float().tag(sync=True)
    top_k = traitlets.Int(None, allow_none=True).tag(sync=True)
    top_p = traitlets.Float(None, allow_none=True).tag(sync=True)
    min_p = traitlets.Float(None, allow_none=True).tag(sync=True)
    order = traitlets.Unicode().tag(sync=True)
    seed = traitlets.Int().tag(sync=True)
    draws = traitlets.Int().tag(sync=True)

    def __init__(self, logits: np.ndarray, tokens: Sequence[str], phrase: str, **opened: object) -> None:
        choice = Choice(**{"top_p": 0.9} | opened)
        data = sampler_data(logits, tokens, phrase)
        self._logits = np.array(logits, np.float64)
        data["questions"] = questions(data, self._logits)
        markup = for_page(picture(data, choice, read(self._logits, choice), with_data=False))
        super().__init__(data=data, markup=markup, **vars(choice))

    @property
    def choice(self) -> Choice:
        """Return the setting that is shown; its ``sampler()`` chooses the same tokens in ``generate``."""
        return Choice(*(getattr(self, name) for name in CHOICES))

    @traitlets.validate(*CHOICES)
    def _offered(self, proposal: dict) -> object:
        try:
            Choice(**{proposal["trait"].name: proposal["value"]})
        except ValueError as error:
            raise traitlets.TraitError(str(error)) from None
        return proposal["value"]

    def __repr__(self) -> str:
        return f"TokenSampler({count(len(self._logits))} tokens after {self.data['phrase']!r})"

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict, dict]:
        formats, metadata = super()._repr_mimebundle_(**kwargs)
        shown = picture(self.data, self.choice, read(self._logits, self.choice), with_data=True)
        return {**formats, "text/plain": repr(self), "text/html": shown}, metadata
