"""Figures: the same bytes every time, the right counts, the colours of the widgets."""

import re

from reference import ROOT

from prefill_decode import figures, figures_storage, figures_tiles
from prefill_decode.tiled import Tiles, standard_accesses, tiled_accesses


def test_the_palette_is_the_light_one_of_the_widgets():
    css = figures.THEME.read_text("utf-8")
    first = css.index("}")
    for name in ("prefill", "decode", "ink"):
        assert f"--pd-{name}: {figures.palette()[name]};" in css[:first]


def test_a_figure_is_the_same_bytes_every_time():
    assert figures.triangle(3, 2).svg == figures.triangle(3, 2).svg
    assert "<dc:date>" not in figures.triangle(3, 2).svg


def cells(svg, name):
    return len(re.findall(rf"fill: {figures.palette()[name]}", svg))


def test_every_pair_is_drawn_once():
    svg = figures.triangle(4, 2).svg
    text = len(re.findall(r"<text[^>]*fill: " + figures.palette()["prefill"], svg))
    assert cells(svg, "prefill") - text == 10
    assert "21 pairs in all" in figures.triangle(4, 2).alt


def test_passes_draw_what_they_compute():
    picture = figures.passes(3, 4)
    assert "18 pairs" not in picture.alt
    assert "21 pairs in all" in picture.alt  # T = 6
    assert "52 pairs" in picture.alt  # 6 + 10 + 15 + 21


def test_accesses_are_those_of_the_formula():
    picture = figures_tiles.accesses_over_memory(256, 16, [256, 1024, 4096])
    ratio = tiled_accesses(256, 16, Tiles.for_memory(256, 16, 256), skip=False) / standard_accesses(256, 16)
    assert f"{ratio:.1f} times as many at M = d² = 256" in picture.alt
    assert picture.svg == figures_tiles.accesses_over_memory(256, 16, [256, 1024, 4096]).svg
    assert "times as many at 512." in figures_tiles.accesses_over_length(16, 1024, [64, 512]).alt


def test_every_way_of_storing_is_named():
    picture = figures_storage.trade_off({"exact": (100, 5.0), "2 bits": (20, 9.25), "window": (15, 8)})
    assert "exact 100 bytes, 5.0; 2 bits 20 bytes, 9.2; window 15 bytes, 8.0" in picture.alt
    assert all(f">{name}<" in picture.svg for name in ("exact", "2 bits", "window"))


def test_the_mark_has_the_colours_of_the_phases():
    theme = figures.THEME.read_text("utf-8")
    phases = {value for name in ("prefill", "decode") for value in re.findall(rf"--pd-{name}: (#\w+);", theme)}
    assert set(re.findall(r"#[0-9a-f]{6}", (ROOT / "book/assets/favicon.svg").read_text("utf-8"))) == phases
