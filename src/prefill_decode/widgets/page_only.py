"""Markup that makes sense on a page with scripts only: a widget's controls.

Notebook viewers strip attributes such as ``hidden`` from an untrusted output and would show dead buttons. All of them
drop a script element with what is in it, so the controls wait in one until the book's build takes them out.
"""

import re

WRAPPED = re.compile(r'<script type="text/template">(.*?)</script>', re.DOTALL)


def page_only(markup: str) -> str:
    """Wrap markup so that a notebook viewer drops it."""
    return f'<script type="text/template">{markup}</script>'


def for_page(markup: str) -> str:
    """Unwrap what ``page_only`` wrapped: the build of a page does this."""
    return WRAPPED.sub(lambda match: match.group(1), markup)
