"""Lets a language model write text."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_engine.training.evaluation.reports.output_report import SEED

LENGTH = 300
"""Tokens that are written at most."""

SECONDS = 2.0
"""Time after which no token is added."""

TEMPERATURE = 0.8


NextChances: TypeAlias = Callable[[npt.NDArray[Any], int], npt.NDArray[np.float64]]
"""Returns the probability of each next token after the token at an index, for some tokens."""


def generate(next_chances: NextChances, prompt: Sequence[int], window: int, *, any_length: bool = False) -> list[int]:
    """Continue a prompt, the same at every call for the same model; see :func:`continued`."""
    tokens = continued(next_chances, prompt, window, any_length=any_length)
    ends, written = time.monotonic() + SECONDS, list[int]()
    while len(written) < LENGTH and time.monotonic() < ends:
        if (token := next(tokens, None)) is None:
            break
        written.append(token)
    return written


def continued(
    next_chances: NextChances,
    prompt: Sequence[int],
    window: int,
    *,
    any_length: bool = False,
    temperature: float = TEMPERATURE,
    seed: int = SEED,
) -> Iterator[int]:
    """Yield the tokens after a prompt, each drawn by its probability, until one is not finite.

    Args:
        next_chances: The model.
        prompt: The first tokens.
        window: Most tokens that the model is given.
        any_length: Whether the model takes fewer; otherwise zeros follow the tokens, which a causal model ignores.
        temperature: What the logarithms of probabilities are divided by; 0 always takes the most probable token.
        seed: Seed of the draws.
    """
    generator, tokens = np.random.default_rng(seed), list(prompt)
    while True:
        given = np.array(tokens[-window:])
        last = len(given) - 1
        if not any_length:
            given = np.pad(given, (0, window - len(given)))
        found = next_chances(given, last)
        if not np.isfinite(found).all():
            return
        if temperature == 0:
            tokens.append(int(found.argmax()))
        else:
            with np.errstate(divide="ignore"):
                scaled = np.log(found) / temperature
            chances = np.exp(scaled - scaled.max())
            if not np.isfinite(chances).all():
                return
            tokens.append(int(generator.choice(len(chances), p=chances / chances.sum())))
        yield tokens[-1]
