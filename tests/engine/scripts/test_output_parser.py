"""Values in the lines that a script prints."""

import pytest

from accel_engine.errors import UsageError
from accel_engine.scripts.output_parser import OutputParser, check_patterns


def values(patterns: list[str], *data: bytes) -> list[dict[str, float]]:
    parser = OutputParser(patterns)
    lines = [line for part in data for line in parser.feed("stdout", part)]
    return [line.values for line in [*lines, *parser.finish()]]


def test_a_line_gives_the_values_of_all_patterns() -> None:
    found = values([r"loss=(?P<loss>[\d.]+)", r"acc (?P<accuracy>\S+)"], b"step 1 loss=0.5 acc 0.25\nnothing\nloss=2\n")

    assert found == [{"loss": 0.5, "accuracy": 0.25}, {"loss": 2.0}]


def test_lines_may_come_in_pieces_and_end_with_a_carriage_return_or_the_output() -> None:
    pieces = (b"lo", b"ss=1\rloss=2\r\nlos", b"s=3")

    assert values([r"loss=(?P<loss>[\d.]+)"], *pieces) == [{"loss": 1.0}, {"loss": 2.0}, {"loss": 3.0}]


def test_each_stream_has_lines_of_its_own() -> None:
    parser = OutputParser([r"loss=(?P<loss>\d+)"])

    assert parser.feed("stdout", b"loss=") == []
    assert [line.values for line in parser.feed("stderr", b"loss=7\n")] == [{"loss": 7.0}]
    assert [line.values for line in parser.feed("stdout", b"8\n")] == [{"loss": 8.0}]


def test_colours_within_a_value_do_not_hide_it() -> None:
    assert values([r"loss (?P<loss>[\d.]+)"], b"\x1b[1mloss\x1b[0m 0.5\n") == [{"loss": 0.5}]


def test_what_is_no_number_is_left_out_and_nan_is_kept() -> None:
    (found,) = values([r"loss=(?P<loss>\w+) acc=(?P<accuracy>\w+)( lr=(?P<rate>\S+))?"], b"loss=nan acc=high\n")

    assert list(found) == ["loss"]
    assert found["loss"] != found["loss"]


def test_a_step_alone_is_no_value() -> None:
    assert values([r"step (?P<step>\d+)"], b"step 3\n") == []


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("loss=(", "is not a regular expression"),
        ("loss=(.*)", "names no value"),
        (r"(?P<step>\d+)", "no values of them"),
    ],
)
def test_a_wrong_pattern_is_explained_with_an_example(pattern: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as caught:
        check_patterns([pattern])

    assert "for example 'loss=(?P<loss>" in str(caught.value)


LOSS = [r"loss=(?P<loss>[\d.]+)"]


def tqdm(*drawn: tuple[int, float | None]) -> bytes:
    """What tqdm writes for a bar of three."""
    bars = (f"\r {n}/3 [00:01<00:02, 9.5it/s{'' if loss is None else f', loss={loss}'}]" for n, loss in drawn)
    return "".join(bars).encode()


def test_a_bar_that_is_drawn_twice_a_step_has_a_step_each() -> None:
    """``for x in tqdm(...): bar.set_postfix(loss=...)``: a new count comes with the loss of the step before."""
    drawn = tqdm((0, None), (0, 0.5), (1, 0.5), (1, 0.4), (2, 0.4), (2, 0.3), (3, 0.3))

    assert values(LOSS, drawn + b"\n") == [{"loss": 0.5}, {"loss": 0.4}, {"loss": 0.3}]
    assert values(LOSS, drawn + drawn + b"\n") == [{"loss": 0.5}, {"loss": 0.4}, {"loss": 0.3}] * 2  # epochs
    pieces = [drawn[start : start + 7] for start in range(0, len(drawn), 7)]
    assert values(LOSS, *pieces, b"\n") == [{"loss": 0.5}, {"loss": 0.4}, {"loss": 0.3}]


def test_a_bar_that_is_updated_before_its_values_has_a_step_each() -> None:
    """``bar.update(1)``, and then ``bar.set_postfix(loss=...)``."""
    drawn = tqdm((1, None), (1, 0.5), (2, 0.5), (2, 0.4), (3, 0.4), (3, 0.3), (3, 0.3))

    assert values(LOSS, drawn + b"\n") == [{"loss": 0.5}, {"loss": 0.4}, {"loss": 0.3}]


def test_steps_with_the_same_values_are_steps() -> None:
    assert values(LOSS, tqdm((0, 0.5), (1, 0.5), (2, 0.5), (3, 0.5)) + b"\n") == [{"loss": 0.5}] * 3


def test_a_count_that_stays_hides_no_step() -> None:
    """tqdm adds to the count of a fast loop now and then only."""
    assert values(LOSS, tqdm((0, 0.5), (0, 0.4), (2, 0.4), (2, 0.3), (2, 0.2)) + b"\n") == [
        {"loss": loss} for loss in (0.5, 0.4, 0.3, 0.2)
    ]


def test_only_what_is_drawn_in_place_and_has_no_step_is_a_bar() -> None:
    lines = b" 1/3 [ loss=0.5\n 1/3 [ loss=0.5\n"
    assert values(LOSS, lines) == [{"loss": 0.5}] * 2
    assert values(LOSS, b"\repoch 1/3 loss=0.5\repoch 1/3 loss=0.5\n") == [{"loss": 0.5}] * 2
    named = [r"(?P<step>\d+)/3 .*loss=(?P<loss>[\d.]+)"]
    assert values(named, tqdm((1, 0.5), (2, 0.5)) + b"\n") == [{"step": 1.0, "loss": 0.5}, {"step": 2.0, "loss": 0.5}]
