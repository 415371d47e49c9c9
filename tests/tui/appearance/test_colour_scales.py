"""Colours that stand for amounts."""

from itertools import pairwise

import pytest

from accel_tui.appearance.colours import (
    CORRECT,
    INCORRECT,
    contrasting_text_colour,
    scale_colour,
    shading_character,
)

GROUNDS = {True: (17, 21, 26), False: (251, 250, 247)}


def luminance(colour: tuple[int, int, int]) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in colour]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("hue", [CORRECT, INCORRECT])
def test_a_larger_share_is_further_from_the_ground_and_can_be_read(hue: str, dark: bool) -> None:
    ground = GROUNDS[dark]
    colours = [scale_colour(share / 100, hue, ground, dark=dark) for share in range(101)]
    assert colours[0] == ground
    steps = [contrast(colour, ground) for colour in colours]
    assert all(later >= earlier - 0.05 for earlier, later in pairwise(steps))
    assert steps[1] > 1.1
    assert min(contrast(contrasting_text_colour(colour), colour) for colour in colours) >= 4.0


@pytest.mark.parametrize("dark", [True, False])
def test_right_and_wrong_differ_in_blue_which_all_colour_blind_but_few_see(dark: bool) -> None:
    for share in (0.05, 0.3, 1.0):
        right, wrong = (scale_colour(share, hue, GROUNDS[dark], dark=dark) for hue in (CORRECT, INCORRECT))
        assert right[2] - wrong[2] > 20
        assert wrong[0] - right[0] > 20


def test_shades_are_blank_for_nothing_alone() -> None:
    assert [shading_character(share) for share in (0.0, 1e-6, 0.25, 1.0)] == [" ", ".", "=", "@"]
