"""Maps the names of a model's metrics to series names, which are valid column names."""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice, product
from math import prod
from typing import Any

from accel_engine.plan.task_choices import metric_name
from accel_engine.run.store.schema import FIXED_CHUNK_COLUMNS

LEARNING_RATE = "learning_rate"
"""Name of the series of learning rates, as used by each step."""

GRADIENT_NORM = "gradient_norm"
"""Name of the series of the norm of all gradients; followed by ``_`` and a layer, of the layer's."""

MICRO_BATCH_NORM = "gradient_norm_of_micro_batches"
"""The series of the norm of the gradients of a micro-batch: the root of the mean of its square over a step's."""

BATCH_SIZE = "batch_size"
"""The series by which an inference bench has its other values, instead of steps."""

MAX_ELEMENTS = 32
"""Maximum recorded elements of a metric with several values, such as an F1 score per class."""

MEAN_PREFIXES = ("mean_", "running_")
"""Prefixes of series of a recorded ``fit`` that are means: over an execution's batches, over the epoch so far."""

VALIDATION_PREFIX = "validation_"
"""Prefix of the metrics of validation where they stand beside training's."""

_VALIDATION = re.compile(r"val(idation)?[^a-z0-9](?=.)", re.IGNORECASE)
"""The beginning of a name of a metric of validation, such as ``val_loss`` or ``val/loss``."""

_RESERVED = frozenset((*FIXED_CHUNK_COLUMNS, "event", "step", "epoch", "time", "seconds", "steps_per_second"))
"""Names of other columns in files, tables and JSON lines, which no series can have."""


def series_name(name: str) -> str:
    """Convert a metric's name to a valid series name: ``Acc@1`` to ``acc_1``, ``time`` to ``metric_time``."""
    plain = re.sub(r"\W", "_", name.lower(), flags=re.ASCII)
    return f"metric_{plain}" if plain in _RESERVED or not plain or plain[0].isdigit() else plain


def is_loss(name: str) -> bool:
    """Whether a series is a loss: ``loss``, ``OUTPUT_loss``, ``d_loss``."""
    return name == "loss" or name.endswith("_loss")


def infer_monitor(series: Collection[str], task: str = "") -> str:
    """The metric that counts if the plan names none: the accuracy of a classification, else the loss.

    Args:
        series: Names of the series, or of the metrics of validation, without a prefix.
        task: What is learned; empty if unknown.

    Returns:
        One of ``series``, or ``loss``.
    """
    if task in ("", "auto", "classification"):
        accuracies = [name for name in series if name == "accuracy" or name.endswith("_accuracy")]
        if "accuracy" in accuracies or len(accuracies) == 1:
            return "accuracy" if "accuracy" in accuracies else accuracies[0]
    return "loss" if "loss" in series else next(filter(is_loss, series), "loss")


def choose_monitor(wanted: str, trained: Collection[str], validated: Collection[str], task: str = "") -> str:
    """The metric that counts, with ``validation_`` before one of validation.

    Args:
        wanted: The plan's ``monitor``; empty to infer it. ``val_loss``, as in Keras, is ``validation_loss``.
        trained: Names of the series of steps.
        validated: Names of the metrics of validation, without a prefix.
        task: What is learned; empty if unknown.
    """
    if wanted:
        return metric_name(wanted)
    name = infer_monitor(validated or trained, task)
    return VALIDATION_PREFIX + name if name in validated else name


def logged_metric(name: str) -> tuple[bool, str]:
    """Whether a value that a script logs or prints is of a validation, and its name without a prefix that says so."""
    if prefix := _VALIDATION.match(name):
        return True, name[prefix.end() :]
    return False, LEARNING_RATE if name == "lr" else name


def rounded_rate(rate: float) -> float:
    """A learning rate with the digits that a float32 has."""
    return float(f"{rate:.7g}")


class SeriesNames:
    """Gives each metric of a run a unique series name, the same for steps and validations.

    A metric with one value has one series, whatever its shape. Others have one per element: ``f1_score_0``, ...

    Args:
        measured: Names of what the run itself measures; a metric of the same name is the same series.
    """

    def __init__(self, *measured: str) -> None:
        self._names: dict[tuple[str, ...], str] = {(name,): name for name in measured}
        self._reserved: set[str] = set()
        self._notes: dict[str, bool] = {}

    def reserve(self, *names: str) -> None:
        """Give these names to no metric from now on, not even to one of the same name."""
        self._reserved.update(names)

    def scalars(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Flatten metrics to scalars by series name.

        Args:
            results: Numbers, arrays or tensors, or mappings of these, by metric name.
        """
        found = list(self._elements((), results))
        # A metric whose name is valid keeps it, whichever comes first.
        for path, _ in sorted(found, key=lambda element: series_name("_".join(element[0])) != "_".join(element[0])):
            self._add(path)
        return {self._names[path]: value for path, value in found}

    def take_notes(self) -> list[str]:
        """Return the notes for the user since the last call: which names are changed, and which metrics are skipped."""
        new = [note for note, is_new in self._notes.items() if is_new]
        self._notes = dict.fromkeys(self._notes, False)
        return new

    def _elements(self, path: tuple[str, ...], results: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
        """The elements of metrics, each with the metric's name and the element's indices."""
        for name, value in results.items():
            metric = (*path, str(name))
            if isinstance(value, list | tuple):
                value = dict(enumerate(value))
            if isinstance(value, Mapping):
                yield from self._elements(metric, value)
                continue
            shape = _shape_of(value)
            if shape is None or not prod(shape):
                reason = "its shape is unknown" if shape is None else "it has no value"
                self.add_note(f"the metric {'_'.join(metric)} is not recorded: {reason}")
            elif prod(shape) == 1:
                yield metric, value[(0,) * len(shape)] if shape else value
            else:
                if prod(shape) > MAX_ELEMENTS:
                    note = f"has {prod(shape):,} values: the first {MAX_ELEMENTS} are recorded"
                    self.add_note(f"the metric {'_'.join(metric)} {note}")
                for index in islice(product(*map(range, shape)), MAX_ELEMENTS):
                    yield (*metric, *map(str, index)), value[index]

    def _add(self, path: tuple[str, ...]) -> None:
        if path in self._names:
            return
        used, wanted, number = {*self._names.values(), *self._reserved}, series_name("_".join(path)), 2
        name = wanted
        while name in used:
            name, number = f"{wanted}_{number}", number + 1
        if name != wanted:
            self.add_note(f"the metric {'_'.join(path)} is recorded as {name}: the name {wanted} is taken")
        self._names[path] = name

    def add_note(self, note: str) -> None:
        """Add a note for the user, unless it was added before."""
        self._notes.setdefault(note, True)


def elements(names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The series of each metric with several elements, numbered from 0, by the metric's name."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        metric, _, number = name.rpartition("_")
        if number.isdecimal() and {f"{metric}_0", f"{metric}_1"} <= {*names}:
            found[metric] = (*found.get(metric, ()), name)
    return found


def _shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of an array or a tensor; ``None`` if it is not fully known in a graph."""
    try:
        shape = tuple(getattr(value, "shape", ()))
    except ValueError:  # a tensor of unknown rank
        return None
    return None if None in shape else shape
