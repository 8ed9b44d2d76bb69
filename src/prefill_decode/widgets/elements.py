"""Elements that a module finds again by `data-text` and `data-place`, and the controls of the cost widgets."""

import html
import json
from collections.abc import Iterable, Mapping

ROOT_CLASS = "tex2jax_ignore mathjax_ignore"  # MathJax keeps away from what may look like a formula

# Attributes that are the same in every state.
POLITE, STATUS, UNSEEN = ' aria-live="polite"', ' role="status"', ' aria-hidden="true"'
STROKE, DASHED = ' stroke="currentColor"', ' stroke-dasharray="4 4"'
UPRIGHT = f' y2="100%"{STROKE}'


def root(name: str, label: str, attributes: Mapping[str, str], traits: dict | None, body: str) -> str:
    """Return a widget's root; `traits` go into the page, which has no other model, and are None in a notebook."""
    told = "".join(f' data-{key}="{html.escape(value)}"' for key, value in attributes.items())
    script = "" if traits is None else _script(traits)
    opening = f'<div data-widget="{name}" class="{ROOT_CLASS}" role="group" aria-label="{label}"{told}>'
    return f"{opening}{script}{body}</div>"


def _script(traits: dict) -> str:
    text = json.dumps(traits, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'


def room(texts: Iterable[str]) -> str:
    """Return an attribute that keeps room for any of these texts, set unseen below the one that is shown.

    It is the longest and a word more, since a shorter one may break its lines worse.
    """
    return f' data-room="{html.escape(max(texts, key=len))} {"x" * 12}"'


def text(tag: str, name: str, texts: Mapping[str, str], css: str = "", more: str = "") -> str:
    """Return an element that shows one of the texts."""
    classes = f' class="{css}"' if css else ""
    return f'<{tag}{classes} data-text="{name}"{more}>{html.escape(texts[name], quote=False)}</{tag}>'


def place(
    tag: str, name: str, places: Mapping[str, Mapping[str, str]], css: str, more: str = "", inner: str = ""
) -> str:
    """Return an element that stands at one of the places."""
    put = " ".join(f'{key}="{value}"' for key, value in places[name].items())
    return f'<{tag} class="{css}" data-place="{name}" {put}{more}>{inner}</{tag}>'


def label(
    name: str, texts: Mapping[str, str], places: Mapping[str, Mapping[str, str]], css: str, more: str = "", at: str = ""
) -> str:
    """Return a text of an SVG that stands at the place of its own name, or at another one."""
    return place("text", at or name, places, css, f'{more} data-text="{name}"', html.escape(texts[name], quote=False))


def drawing(title: str, height: int, texts: Mapping[str, str], inner: str) -> str:
    """Return an SVG drawn in shares of its size: a narrow one is laid out anew, and its letters keep their size."""
    return (
        f'<svg role="img" aria-label="{title}" width="100%" height="{height}" overflow="visible" fill="currentColor"'
        f' stroke="none"><title>{title}</title>{text("desc", "sentence", texts)}{inner}</svg>'
    )


def scale(across: Mapping[str, str], up: Mapping[str, str], titles: str) -> str:
    """Return the lines and numbers of both axes, each by the place it stands at."""
    lines = "".join(f'<line x1="{x}" x2="{x}" y1="0%" y2="100%"/>' for x in across)
    lines += "".join(f'<line x1="0%" x2="100%" y1="{y}" y2="{y}"/>' for y in up)
    numbers = "".join(f'<text x="{x}" y="100%" dy="17" text-anchor="middle">{n}</text>' for x, n in across.items())
    numbers += "".join(f'<text x="0%" y="{y}" dx="-6" dy="4" text-anchor="end">{n}</text>' for y, n in up.items())
    grid = f'<g class="pd-grid-lines" stroke="currentColor" stroke-opacity="0.2">{lines}</g>'
    return f'{grid}<g class="pd-scale">{numbers}{titles}</g>'


def select(title: str, name: str, options: Mapping[str, str], chosen: str) -> str:
    """Return a select with its visible label."""

    def option(value: str, shown: str) -> str:
        mark = " selected" if value == chosen else ""
        return f'<option value="{html.escape(value)}"{mark}>{html.escape(shown, quote=False)}</option>'

    listed = "".join(option(*entry) for entry in options.items())
    return (
        f'<label><span aria-hidden="true">{title}</span>'
        f'<select aria-label="{title}" name="{name}" autocomplete="off">{listed}</select></label>'
    )


def questions(asked: Mapping[str, str]) -> str:
    """Return a button for each question."""
    buttons = "".join(f'<button type="button" data-ask="{name}">{shown}</button>' for name, shown in asked.items())
    return f"<span>Try:</span>{buttons}"
