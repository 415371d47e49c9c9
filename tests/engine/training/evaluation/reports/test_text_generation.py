"""Text that a language model writes."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from accel_engine.training.evaluation.reports import text_generation
from accel_engine.training.evaluation.reports.text_generation import LENGTH, TEMPERATURE, generate


def test_tokens_are_drawn_by_their_probability() -> None:
    chances = np.array([0.5, 0.3, 0.2, 0.0])
    sharper = chances ** (1 / TEMPERATURE)
    generator = np.random.default_rng(0)
    expected = [int(generator.choice(4, p=sharper / sharper.sum())) for _ in range(LENGTH)]

    assert generate(lambda *_: chances, [1, 2], 8) == expected


@pytest.mark.parametrize("any_length", [False, True])
def test_a_model_is_given_the_last_tokens(monkeypatch: pytest.MonkeyPatch, any_length: bool) -> None:
    monkeypatch.setattr(text_generation, "LENGTH", 4)
    given: list[tuple[list[int], int]] = []

    def after(tokens: npt.NDArray[Any], last: int) -> npt.NDArray[np.float64]:
        given.append((tokens.tolist(), last))
        return np.eye(9)[tokens[last] + 1]

    assert generate(after, [1, 2], 4, any_length=any_length) == [3, 4, 5, 6]
    padded = [([1, 2], 1), ([1, 2, 3], 2)] if any_length else [([1, 2, 0, 0], 1), ([1, 2, 3, 0], 2)]
    assert given == [*padded, ([1, 2, 3, 4], 3), ([2, 3, 4, 5], 3)]


def test_nothing_is_written_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 10.0, 11.9, 12.0])
    monkeypatch.setattr(text_generation, "time", SimpleNamespace(monotonic=lambda: next(times)))

    assert generate(lambda *_: np.array([1.0]), [0], 4) == [0, 0]
