"""Examples to predict, and why some of what was given is none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import Structure, map_structure

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Examples of one file, or of texts.

    Attributes:
        names: What each example is called, ``[given]``.
        inputs: A structure of arrays ``[readable, ...]``, as the run's data has them; ``None`` if none is readable.
        problems: Why an example cannot be predicted, by its place.
        notes: Notes for the user.
    """

    names: Sequence[str]
    inputs: Structure
    problems: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def readable(self) -> npt.NDArray[np.intp]:
        """The places of the examples that can be predicted."""
        return np.array([place for place in range(len(self.names)) if place not in self.problems], np.intp)


def without_problems(inputs: Structure, problems: Iterable[int]) -> Structure:
    """The arrays without the rows that have a problem."""
    rows = list(problems)
    return map_structure(lambda array: np.delete(array, rows, axis=0), inputs) if rows else inputs
