"""Which steps are shown, and what has to be read to show them."""

import pytest

from accel_tui.run_state.step_window import FOLLOWED, MIN_SPAN, StepWindow, VisibleSteps, describe_window, steps_to_load

STEPS = 1_000_000


def test_the_whole_run_is_shown_at_first() -> None:
    assert StepWindow().bounds(STEPS) is None


def test_zooming_in_keeps_the_end_and_follows_it() -> None:
    window = StepWindow().zoomed(STEPS, 0.5)
    assert window == StepWindow(STEPS // 2)
    assert window.bounds(STEPS) == (STEPS // 2, STEPS)
    first, last = window.bounds(STEPS + 1) or (0, 0)
    assert last - first == STEPS // 2
    assert last > STEPS


def test_a_window_that_follows_moves_in_jumps() -> None:
    window = StepWindow(800)
    places = {window.bounds(steps) for steps in range(2001, 2101)}
    assert places == {(1300, 2100)}
    assert window.bounds(2101) == (1400, 2200)


def test_a_window_that_follows_a_short_run_begins_with_it() -> None:
    assert StepWindow(800).bounds(5) == (0, 800)


@pytest.mark.parametrize("window", [StepWindow(FOLLOWED), StepWindow(FOLLOWED, 0)])
def test_zooming_into_a_run_that_is_shorter_than_the_window(window: StepWindow) -> None:
    assert window.zoomed(150, 0.5) == StepWindow(75)
    assert window.zoomed(150, 0.5, around=0) == StepWindow(75, 0)
    assert window.zoomed(150, 2) == StepWindow()


def test_zooming_elsewhere_keeps_the_middle() -> None:
    window = StepWindow(1000, 5000)
    assert window.zoomed(STEPS, 0.5) == StepWindow(500, 5250)
    assert window.zoomed(STEPS, 2) == StepWindow(2000, 4500)
    assert StepWindow(1000, 100).zoomed(STEPS, 2) == StepWindow(2000, 0)


def test_zooming_out_ends_with_the_whole_run_and_zooming_in_with_few_steps() -> None:
    window = StepWindow(1000, 5000)
    for _ in range(20):
        window = window.zoomed(STEPS, 2)
    assert window == StepWindow()
    for _ in range(40):
        window = window.zoomed(STEPS, 0.5)
    assert window.span == MIN_SPAN
    assert StepWindow().zoomed(10, 0.5) == StepWindow()
    assert StepWindow().zoomed(10, 2) == StepWindow()


def test_scrolling_stops_at_the_beginning_and_follows_from_the_end_on() -> None:
    window = StepWindow(1000).moved(STEPS, -0.25)
    assert window == StepWindow(1000, STEPS - 1250)
    assert window.moved(STEPS, 0.25) == StepWindow(1000)
    assert StepWindow(1000, 100).moved(STEPS, -0.25) == StepWindow(1000, 0)
    assert StepWindow(1000).moved(STEPS, 0.25) == StepWindow(1000)


def test_the_whole_run_cannot_be_scrolled() -> None:
    assert StepWindow().moved(STEPS, -0.25) == StepWindow()


def test_beginning_and_end_are_a_step_away() -> None:
    assert StepWindow(300, 5000).at_beginning() == StepWindow(300, 0)
    assert StepWindow(300, 5000).at_end() == StepWindow(300)
    assert StepWindow().at_end() == StepWindow(FOLLOWED)
    assert StepWindow().at_beginning() == StepWindow(FOLLOWED, 0)


@pytest.mark.parametrize(
    ("bounds", "known", "part"),
    [
        (None, 2048, None),
        ((0, 1000), 1, None),  # all steps are there one by one
        ((500_000, 500_400), 64, VisibleSteps(499_800, 500_600, 1, frozenset({"loss"}))),
        ((0, 400), 64, VisibleSteps(0, 600, 1, frozenset({"loss"}))),
        ((500_000, 500_100), 64, VisibleSteps(499_950, 500_150, 1, frozenset({"loss"}))),
        ((500_000, 512_800), 64, VisibleSteps(493_600, 519_200, 32, frozenset({"loss"}))),
        ((500_000, 600_000), 64, None),  # a dot is of more steps than what is known as one
        ((500_000, 600_000), 1024, VisibleSteps(450_000, 650_000, 128, frozenset({"loss"}))),
    ],
)
def test_what_is_not_known_finely_enough_is_to_be_read(
    bounds: tuple[int, int] | None, known: int, part: VisibleSteps | None
) -> None:
    assert steps_to_load(bounds, 400, known, ["loss"]) == part


def test_a_chart_without_room_needs_nothing() -> None:
    assert steps_to_load((0, 100), 0, 64, ["loss"]) is None


@pytest.mark.parametrize("window", [StepWindow(), StepWindow(1000, 5000), StepWindow(1000)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.75])
def test_what_is_under_the_pointer_stays_there(window: StepWindow, share: float) -> None:
    low, high = window.bounds(STEPS) or (0, STEPS)
    at = low + share * (high - low)
    new_low, new_high = window.zoomed(STEPS, 0.8, at).bounds(STEPS) or (0, STEPS)
    assert new_high - new_low == round(0.8 * (high - low))
    assert new_low + share * (new_high - new_low) == pytest.approx(at, abs=1)


def test_the_end_is_followed_on_when_the_pointer_is_there_and_a_step_outside_counts_as_the_edge() -> None:
    assert StepWindow(1000).zoomed(STEPS, 0.5, STEPS - 1) == StepWindow(500)
    assert StepWindow().zoomed(STEPS, 0.5, 3 * STEPS) == StepWindow(STEPS // 2)
    assert StepWindow(1000, 5000).zoomed(STEPS, 0.5, 0) == StepWindow(500, 5000)
    assert StepWindow(1000, 5000).zoomed(STEPS, 5000, 5500) == StepWindow()


def test_a_window_moves_no_further_than_to_show_a_step() -> None:
    window = StepWindow(1000, 5000)
    assert window.with_step(STEPS, 5999) == window.with_step(STEPS, 5000) == window
    assert window.with_step(STEPS, 6000) == StepWindow(1000, 5001)
    assert window.with_step(STEPS, 4990) == StepWindow(1000, 4990)
    assert StepWindow(1000).with_step(STEPS, 10) == StepWindow(1000, 10)
    assert StepWindow().with_step(STEPS, 10) == StepWindow().with_step(0, 0) == StepWindow()


def test_which_steps_are_shown_is_said() -> None:
    assert describe_window(StepWindow(), 500) == ""
    assert describe_window(StepWindow(1000), STEPS) == "the last 1,000 steps"
    assert describe_window(StepWindow(1000, 5000), STEPS) == "steps 5,000 to 5,999"


@pytest.mark.parametrize(
    ("first", "stop", "window"),
    [
        (400, 500, StepWindow(150, 375)),
        (0, 100, StepWindow(125, 0)),
        (900, 1000, StepWindow(125, 875)),
        (0, 1000, StepWindow()),
        (500, 501, StepWindow(17, 492)),
    ],
)
def test_a_window_around_steps_shows_what_is_beside_them_and_does_not_follow(
    first: int, stop: int, window: StepWindow
) -> None:
    assert StepWindow.around(1000, first, stop) == window
