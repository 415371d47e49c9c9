"""What is known of data, in types that can be sent and stored."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from accel_engine.data import DataOptions, find, load, survey
from accel_engine.data.data_options import Progress, no_progress
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.loaded_entry import entry_of
from accel_engine.data.structure import Batch, Structure, named_leaves
from accel_engine.data_profile.picture import DataPicture, look_at


@dataclass(frozen=True, slots=True)
class DescribedData:
    """What is known of data, in types that can be sent and stored.

    Attributes:
        entry: The data, without the specification of its arrays.
        inputs: A line about each array of the inputs, by name.
        targets: The same of the targets.
        weights: The same of the weights.
        picture: What some examples are like; ``None`` of data that was not read, and of a stream.
    """

    entry: DatasetEntry
    inputs: Mapping[str, str]
    targets: Mapping[str, str]
    weights: Mapping[str, str]
    picture: DataPicture | None = None

    @classmethod
    def of(cls, entry: DatasetEntry, picture: DataPicture | None = None) -> Self:
        """What an entry tells, and what was seen of the data."""
        inputs, targets, weights = (dict(_specs(part)) for part in entry.spec or Batch(None))
        return cls(replace(entry, spec=None), inputs, targets, weights, picture)

    def to_json(self) -> dict[str, Any]:
        """All of it in types of JSON, without where its code is."""
        values = asdict(replace(self.entry, path=None, value_range=None))
        return {
            **{name: value for name, value in values.items() if name not in ("reader", "spec", "path", "value_range")},
            "path": str(self.entry.path) if self.entry.path else None,
            "inputs_spec": self.inputs,
            "targets_spec": self.targets,
            "weights_spec": self.weights,
            "picture": self.picture.to_json() if self.picture else None,
        }


def _specs(structure: Structure) -> Iterator[tuple[str, str]]:
    return ((name, str(spec)) for name, spec in named_leaves(structure))


def describe_loaded(
    spec: str, options: DataOptions, entry: DatasetEntry | None = None, progress: Progress = no_progress
) -> DescribedData:
    """Read data, and tell what it is like.

    Args:
        spec: A plan's ``data``.
        options: How it is read and split.
        entry: What is known of it already; by default what its headers tell or, where only the engine can look at it,
            what reading tells.
        progress: Reports the number of examples read.

    Raises:
        DataError: It cannot be read.
        PlanError: An option does not fit it.
    """
    found = find(spec)
    if entry is None and not found.needs_engine:
        entry = survey(found, options)
    dataset = load(spec, options, progress)
    if entry is None:
        entry = entry_of(dataset, found)
    elif entry.examples is None:  # as of packed records
        loaded = entry_of(dataset, found)
        counts = ("examples", "validation_examples", "test_examples")
        entry = replace(entry, **{name: getattr(loaded, name) for name in counts})
    return DescribedData.of(entry, look_at(dataset, options.task))
