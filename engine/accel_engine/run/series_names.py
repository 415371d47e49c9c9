"""The names of series: what a model calls its metrics, as names that a run's columns can have."""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice, product
from math import prod
from typing import Any

from accel_engine.run.schema import series_name

MOST_ELEMENTS = 32
"""Of a metric with more values than these, such as an F1 score a class, the first ones are recorded."""

MEAN_PREFIXES = ("mean_", "running_")
"""Before a metric's name where a recorded ``fit`` has means of it: of an execution's batches, of the epoch so far."""


class SeriesNames:
    """Gives each metric of a run a name of its own, the same at steps and in validations.

    A metric of one value has one series, whatever its shape. One of several has a series for each: ``f1_score_0``, ...

    Args:
        taken: The names of what the run measures by itself; a metric called just so is taken for the same.
    """

    def __init__(self, *taken: str) -> None:
        self._names: dict[tuple[str, ...], str] = {(name,): name for name in taken}
        self._reserved: set[str] = set()
        self._remarks: dict[str, bool] = {}

    def reserve(self, *names: str) -> None:
        """Give these names to no metric from now on, also to one that is called just so."""
        self._reserved.update(names)

    def scalars(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Give every value that some metrics have by the name of its series.

        Args:
            results: Numbers, arrays or tensors, or mappings of these, by the metric's name.
        """
        found = list(self._elements((), results))
        # A metric whose name needs no change keeps it, whichever comes first.
        for path, _ in sorted(found, key=lambda element: series_name("_".join(element[0])) != "_".join(element[0])):
            self._add(path)
        return {self._names[path]: value for path, value in found}

    def remarks(self) -> list[str]:
        """What the user should know that was not given before: which names are changed, and what is left out."""
        fresh = [remark for remark, is_new in self._remarks.items() if is_new]
        self._remarks = dict.fromkeys(self._remarks, False)
        return fresh

    def _elements(self, path: tuple[str, ...], results: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
        """The single values of metrics, each with the metric's name and its place in there."""
        for name, value in results.items():
            here = (*path, str(name))
            if isinstance(value, list | tuple):
                value = dict(enumerate(value))
            if isinstance(value, Mapping):
                yield from self._elements(here, value)
                continue
            shape = _shape_of(value)
            if shape is None or not prod(shape):
                why = "it is not known how many values it has" if shape is None else "it has no value"
                self.remark(f"the metric {'_'.join(here)} is left out: {why}")
            elif prod(shape) == 1:
                yield here, value[(0,) * len(shape)] if shape else value
            else:
                if prod(shape) > MOST_ELEMENTS:
                    words = f"has {prod(shape):,} values: the first {MOST_ELEMENTS} are recorded"
                    self.remark(f"the metric {'_'.join(here)} {words}")
                for place in islice(product(*map(range, shape)), MOST_ELEMENTS):
                    yield (*here, *map(str, place)), value[place]

    def _add(self, path: tuple[str, ...]) -> None:
        if path in self._names:
            return
        used, wanted, number = {*self._names.values(), *self._reserved}, series_name("_".join(path)), 2
        name = wanted
        while name in used:
            name, number = f"{wanted}_{number}", number + 1
        if name != wanted:
            self.remark(f"the metric {'_'.join(path)} is recorded as {name}: another one is {wanted}")
        self._names[path] = name

    def remark(self, remark: str) -> None:
        """Have it given once."""
        self._remarks.setdefault(remark, True)


def elements(names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The series that are the values of one metric, by its name: of those numbered from 0 on, where there are two."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        metric, _, number = name.rpartition("_")
        if number.isdecimal() and {f"{metric}_0", f"{metric}_1"} <= {*names}:
            found[metric] = (*found.get(metric, ()), name)
    return found


def _shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of an array or a tensor; ``None`` where a graph does not know all of it."""
    try:
        shape = tuple(getattr(value, "shape", ()))
    except ValueError:  # of a tensor whose rank is not known
        return None
    return None if None in shape else shape
