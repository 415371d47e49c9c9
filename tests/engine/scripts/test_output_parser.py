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
    [("loss=(", "is no regular expression"), ("loss=(.*)", "names no value"), (r"(?P<step>\d+)", "no values of them")],
)
def test_a_wrong_pattern_is_explained_with_an_example(pattern: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as caught:
        check_patterns([pattern])

    assert "for example 'loss=(?P<loss>" in str(caught.value)
