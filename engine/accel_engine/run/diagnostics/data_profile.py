"""What a run's data is like, from a bounded sample of its examples."""

from dataclasses import dataclass

from accel_engine.json_values import Count, Number, Text


@dataclass(frozen=True, slots=True)
class InputProfile:
    """The numbers of some inputs, as the model gets them.

    Attributes:
        low: The smallest finite value; ``None`` if there is none, here and below.
        high: The largest one.
        mean: Their mean.
        deviation: Their standard deviation, over all features.
        not_finite: Share of the values that are NaN or infinite, 0 to 1.
    """

    low: Number | None
    high: Number | None
    mean: Number | None
    deviation: Number | None
    not_finite: Number


@dataclass(frozen=True, slots=True)
class Shift:
    """The feature whose mean differs most between training and validation.

    Attributes:
        feature: Its index in the flat example, or the name of its column.
        deviations: Difference of the means over the standard deviation in training; values outside of the middle
            98% in training count as the nearest within.
        errors: The same over the standard error of the difference.
        features: Number of features that differ by half a standard deviation or more, and 6 standard errors.
    """

    feature: Text
    deviations: Number
    errors: Number
    features: Count


@dataclass(frozen=True, slots=True)
class DataProfile:
    """What a run's data was like when its training began. ``None`` for what was not measured or does not apply.

    Attributes:
        examples: Number of training examples whose values were looked at.
        validation_examples: The same of validation.
        features: Numbers of an example; 0 if inputs are no numbers, or tokens.
        inputs: Training inputs as the model gets them, before any layer of it.
        validation_inputs: The same of validation.
        continuous_features: Features with more than 8 values, of those that were looked at, scaled up to all.
        constant_features: Features with one value in all training examples that were looked at.
        feature_scales: Standard deviation of the widest feature over that of the narrowest one, without the outer 5%
            and without constant ones; of matrices of features only, not of images, series or tokens.
        shift: The feature whose mean differs most between training and validation.
        classes: Training examples of each class, all that are in memory; empty if targets are no classes.
        validation_classes: The same of validation.
        neighbours: Share of examples whose nearest neighbour in another place has the same class; of numbers to
            predict, the correlation of an example's with its neighbour's.
        neighbours_chance: What it would be if targets had nothing to do with inputs.
        neighbours_examples: Number of examples that it is measured with.
        target_mean: Mean of targets that are one number each.
        target_deviation: Their standard deviation.
        target_low: The smallest of them.
        target_high: The largest one.
        targets_not_finite: Share of target values that are NaN or infinite, 0 to 1.
        compared: Number of training examples that were compared with each other, and with ``compared_validation``.
        compared_validation: Number of validation examples that were compared with these.
        of_examples: Number of all training examples; 0 if unknown.
        duplicates: Compared training examples whose inputs are those of another one before.
        conflicts: Those of them whose target is another.
        leaked: Compared validation examples that are compared training examples, too: with equal inputs and targets.
        class_runs: Share of training examples whose class is that of the one before them in the data.
    """

    examples: Count
    validation_examples: Count = 0
    features: Count = 0
    inputs: InputProfile | None = None
    validation_inputs: InputProfile | None = None
    continuous_features: Count | None = None
    constant_features: Count | None = None
    feature_scales: Number | None = None
    shift: Shift | None = None
    classes: tuple[Count, ...] = ()
    validation_classes: tuple[Count, ...] = ()
    neighbours: Number | None = None
    neighbours_chance: Number | None = None
    neighbours_examples: Count = 0
    target_mean: Number | None = None
    target_deviation: Number | None = None
    target_low: Number | None = None
    target_high: Number | None = None
    targets_not_finite: Number | None = None
    compared: Count = 0
    compared_validation: Count = 0
    of_examples: Count = 0
    duplicates: Count = 0
    conflicts: Count = 0
    leaked: Count = 0
    class_runs: Number | None = None
