"""The themes' colours: enough contrast to read, and series that people who see fewer colours can tell apart."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from accel_tui.appearance.theme import (
    ANSI,
    AREAS,
    CONTRAST,
    DARK,
    HEATS,
    LIGHT,
    LOADS,
    MEASURES,
    THEMES,
    counterpart,
    measure_colours,
)

Array = npt.NDArray[np.float64]

SEEN = {
    "all colours": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""What is seen of linear RGB (Machado, Oliveira and Fernandes 2009, table 1, severity 1)."""

CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
OPPONENTS = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
"""Linear RGB to Oklab, by way of the cones' answers (Ottosson 2020)."""

SERIES = ("primary", "secondary", "success", "warning", "error")
"""The colours that series are drawn in; the accent is the primary colour."""

APART = 0.055
"""The least distance in Oklab; 0.02 can just be seen side by side."""

MIXED = tuple(theme for theme in THEMES if not theme.ansi)


def linear(colour: str) -> Array:
    share = np.array(Color.parse(colour).rgb) / 255
    light: Array = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return light


def oklab(light: Array) -> Array:
    lab: Array = OPPONENTS @ np.cbrt(CONES @ np.clip(light, 0, 1))
    return lab


def contrast(one: str, other: str) -> float:
    """As WCAG 2.2 defines it."""
    dark, light = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def test_the_measures_are_right() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert oklab(linear("#ffffff")) == pytest.approx([1, 0, 0], abs=1e-3)
    for seen in SEEN.values():
        assert seen.sum(axis=1) == pytest.approx([1, 1, 1], abs=1e-5)  # grey stays grey


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("theme", MIXED, ids=lambda theme: theme.name)
def test_series_can_be_told_apart_by_everybody(theme: Theme, seen: str) -> None:
    places = {name: oklab(SEEN[seen] @ linear(getattr(theme, name))) for name in SERIES}
    for one, two in combinations(SERIES, 2):
        assert np.linalg.norm(places[one] - places[two]) >= APART, (one, two)


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("theme", MIXED, ids=lambda theme: theme.name)
def test_what_is_measured_stands_out_and_a_validation_from_its_training(theme: Theme, seen: str) -> None:
    assert theme.background
    for name in MEASURES:
        assert contrast(theme.variables[name], theme.background) >= 4.5, name
    for name in ("loss", "metric"):
        one, two = (oklab(SEEN[seen] @ linear(theme.variables[each])) for each in (name, f"{name}-light"))
        assert np.linalg.norm(one - two) >= APART


def test_textuals_own_themes_have_a_colour_for_everything_measured() -> None:
    for theme in BUILTIN_THEMES.values():
        assert set(measure_colours(theme)) == {*MEASURES, *LOADS, *AREAS, *HEATS}
        assert all(measure_colours(theme).values())


@pytest.mark.parametrize("theme", MIXED, ids=lambda theme: theme.name)
def test_everything_stands_out_from_what_is_behind_it(theme: Theme) -> None:
    least = 7.0 if theme is CONTRAST else 4.5
    assert theme.background
    assert theme.surface
    for behind in (theme.background, theme.surface):
        for name in (*SERIES, "foreground"):
            assert contrast(getattr(theme, name), behind) >= least - 0.6 * (behind == theme.surface), (name, behind)
    assert contrast(theme.foreground or "", theme.background) >= 7
    assert contrast(theme.variables["text-muted"], theme.background) >= least
    assert contrast(theme.variables["text-disabled"], theme.background) >= 3
    for kind in ("block-cursor", "block-cursor-blurred"):
        text = theme.variables.get(f"{kind}-foreground", theme.foreground)
        assert contrast(text or "", theme.variables[f"{kind}-background"]) >= least


def test_the_terminals_own_colours_are_no_others() -> None:
    colours = [getattr(ANSI, name) for name in (*SERIES, "accent", "foreground", "background", "surface", "panel")]
    colours += [value for value in ANSI.variables.values() if value != "none"]
    assert all(colour.startswith("ansi_") for colour in colours)
    assert len({getattr(ANSI, name) for name in SERIES}) == len(SERIES)


def test_changing_goes_between_dark_and_light() -> None:
    assert counterpart(DARK) is LIGHT
    assert counterpart(LIGHT) is DARK
    assert counterpart(CONTRAST) is LIGHT
    assert counterpart(BUILTIN_THEMES["solarized-light"]) is DARK


@pytest.mark.parametrize("theme", [*MIXED, BUILTIN_THEMES["gruvbox"], BUILTIN_THEMES["solarized-light"]])
def test_a_better_level_of_a_heat_map_stands_out_more(theme: Theme) -> None:
    colours = measure_colours(theme)
    steps = [contrast(colours[name], theme.background or "#121212") for name in HEATS]
    assert steps == sorted(steps)
    assert steps[-1] >= 4
