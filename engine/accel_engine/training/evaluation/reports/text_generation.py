"""Lets a language model write text."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.training.evaluation.reports.output_report import SEED

LENGTH = 300
"""Tokens that are written at most."""

SECONDS = 2.0
"""Time after which no token is added."""

TEMPERATURE = 0.8


def generate(
    next_chances: Callable[[npt.NDArray[Any], int], npt.NDArray[np.float64]],
    prompt: Sequence[int],
    window: int,
    *,
    any_length: bool = False,
) -> list[int]:
    """Continue a prompt, each token drawn by its probability, the same at every call for the same model.

    Args:
        next_chances: Returns the probability of each next token after the token at an index, for some tokens.
        prompt: The first tokens.
        window: Most tokens that the model is given.
        any_length: Whether the model takes fewer; otherwise zeros follow the tokens, which a causal model ignores.
    """
    generator, tokens = np.random.default_rng(SEED), list(prompt)
    ends = time.monotonic() + SECONDS
    while len(tokens) < len(prompt) + LENGTH and time.monotonic() < ends:
        given = np.array(tokens[-window:])
        last = len(given) - 1
        if not any_length:
            given = np.pad(given, (0, window - len(given)))
        with np.errstate(divide="ignore"):
            scaled = np.log(next_chances(given, last)) / TEMPERATURE
        chances = np.exp(scaled - scaled.max())
        if not np.isfinite(chances).all():
            break
        tokens.append(int(generator.choice(len(chances), p=chances / chances.sum())))
    return tokens[len(prompt) :]
