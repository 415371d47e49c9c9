"""What is known of record files before they are read; without TensorFlow."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.prepared.feature_description import FeatureDescription
from accel_engine.data.prepared.records import RecordFiles
from accel_engine.data.prepared.roles import Roles, describe_columns, kind_and_range, task_of
from accel_engine.data.splits import split_counts
from accel_engine.data.structure import ArraySpec

_COUNTED = 200_000
"""Records that are counted, at most, before training."""


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """What is known of record files.

    Attributes:
        paths: The files of each split by its name.
        description: The description of their features, with images in the size of the plan.
        roles: Which features are what.
        notes: Notes for the user.
        counts: Number of records of each split, where the data says it.
        name: Name of the dataset; empty for that of its file or folder.
    """

    paths: dict[str, list[Path]]
    description: FeatureDescription
    roles: Roles
    notes: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    name: str = ""

    @property
    def specs(self) -> dict[str, ArraySpec]:
        """Shape and type of each feature."""
        return {name: ArraySpec(each.shape, each.dtype) for name, each in self.description.features.items()}

    @property
    def images(self) -> list[str]:
        """Names of the features that are images."""
        return [name for name, feature in self.description.features.items() if feature.encoding == "image"]


def survey_of_records(entry: DatasetEntry, layout: RecordLayout, options: DataOptions) -> DatasetEntry:
    """Complete an entry with the number of records and what their features are.

    Raises:
        DataError: A file is damaged.
        PlanError: The split does not fit.
    """
    roles, specs = layout.roles, layout.specs
    counts: dict[str, int | None] = {}
    notes = list(layout.notes)
    for split, paths in layout.paths.items():
        if split in layout.counts:
            counts[split] = layout.counts[split]
            continue
        if layout.description.compression:
            counts[split] = None
            continue
        records = RecordFiles(paths, _COUNTED)
        counts[split] = len(records) if records.complete else None
        if not records.complete:
            notes.append(f"more than {len(records):,} {split} records")
    train = counts["train"]
    validation, test = counts.get("validation", 0), counts.get("test", 0)
    if train is not None:
        shares = split_counts(train, options)
        validation = shares[0] if "validation" not in counts else validation
        test = shares[1] if "test" not in counts else test
        train -= ("validation" not in counts) * shares[0] + ("test" not in counts) * shares[1]
    kind, values = kind_and_range(roles, specs, layout.images)
    single = specs[roles.inputs[0]].shape if len(roles.inputs) == 1 else None
    names = layout.description.class_names
    task = task_of(roles, specs, options, names)
    return replace(
        entry,
        name=layout.name or entry.name,
        shape=tuple(side or 0 for side in single) if single is not None else None,
        classes=len(names) or None,
        examples=train,
        validation_examples=validation,
        test_examples=test,
        value_range=values,
        notes=(*entry.notes, *notes),
        kind=kind,
        task=task,
        spec=roles.spec(specs, task),
        columns=describe_columns(roles, specs, layout.images),
        class_names=names,
    )
