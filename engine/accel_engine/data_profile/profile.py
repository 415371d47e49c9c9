"""Makes the profile of some data."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Examples, Split
from accel_engine.data.structure import ArraySpec
from accel_engine.data_profile.equal_rows import agreement, compare_rows
from accel_engine.data_profile.values import (
    SampledRows,
    class_counts,
    class_runs,
    constant_features,
    continuous_features,
    feature_scales,
    find_shift,
    input_profile,
    labels_of,
    sample,
    share_not_finite,
    target_numbers,
)
from accel_engine.run.diagnostics import DataProfile


@dataclass(frozen=True, slots=True, eq=False)
class ProfiledData:
    """The data to profile."""

    train: Examples
    """The training examples."""
    validation: Examples | None = None
    """The validation examples; ``None`` if there are none."""
    scale: float = 1.0
    """The factor that raw inputs are multiplied by."""
    classes: int = 0
    """Number of classes; 0 if targets are not classes."""
    names: tuple[str, ...] = ()
    """Names of the features; empty if they have none."""
    tokens: bool = False
    """Whether inputs are tokens or categories, whose numbers have no order."""


def profile_data(data: ProfiledData) -> DataProfile | None:
    """Profile data, in a fraction of a second; ``None`` for a stream, which could be read only once.

    Raises:
        Exception: A row cannot be read.
    """
    if not isinstance(data.train, Split) or not len(data.train):
        return None
    validation = data.validation if isinstance(data.validation, Split) and len(data.validation) else None
    labels = labels_of(data.train.targets, data.classes)
    others = labels_of(validation.targets, data.classes) if validation else None
    some = sample(data.train, data.scale)
    numbers = target_numbers(some.targets) if not data.classes else None
    found = DataProfile(
        len(some),
        classes=class_counts(labels, data.classes),
        validation_classes=class_counts(others, data.classes),
        class_runs=class_runs(labels),
        of_examples=len(data.train),
        targets_not_finite=share_not_finite(some.targets),
        **compare_rows(data.train, validation, has_classes=labels is not None)._asdict(),
    )
    found = _with_targets(found, numbers)
    return found if data.tokens else _with_values(found, data, some, validation)


def _with_targets(found: DataProfile, numbers: npt.NDArray[np.float64] | None) -> DataProfile:
    """Add the figures of targets that are numbers."""
    known = numbers[np.isfinite(numbers)] if numbers is not None else np.zeros(0)
    if not len(known):
        return found
    return replace(
        found,
        target_mean=float(known.mean()),
        target_deviation=float(known.std()),
        target_low=float(known.min()),
        target_high=float(known.max()),
    )


def _with_values(found: DataProfile, data: ProfiledData, some: SampledRows, validation: Split | None) -> DataProfile:
    """Add what the values of inputs tell."""
    values = some.inputs
    if values is None or not values.size:
        return found
    is_table = isinstance(data.train.spec.inputs, ArraySpec) and len(data.train.spec.inputs.shape) == 1
    numbers = target_numbers(some.targets) if not data.classes else None
    near = agreement(values, labels_of(some.targets, data.classes), numbers, standardize=is_table)
    found = replace(
        found,
        features=some.features,
        inputs=input_profile(values),
        continuous_features=continuous_features(values) * some.stride,
        constant_features=constant_features(values) * some.stride,
        feature_scales=feature_scales(values) if is_table else None,
        neighbours=near.neighbours,
        neighbours_chance=near.chance,
        neighbours_examples=near.examples,
    )
    others = sample(validation, data.scale) if validation else None
    if others is None or others.inputs is None or not others.inputs.size:
        return found
    return replace(
        found,
        validation_examples=len(others),
        validation_inputs=input_profile(others.inputs),
        shift=find_shift(values, others.inputs, data.names, some.stride) if others.stride == some.stride else None,
    )
