"""How a run scales its examples: as the plan, the data and the model have it, and as the run did before."""

import keras

from accel_engine.data.dataset import Dataset
from accel_engine.data.pixel_scaling import Scaling, choose_scaling, scaling_by
from accel_engine.models.traits import preprocessing
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import InputSpec


def decide_scaling(plan: Plan, dataset: Dataset, model: keras.Model, trained: InputSpec | None = None) -> Scaling:
    """Decide what raw examples are multiplied with.

    Args:
        plan: The plan.
        dataset: The data.
        model: Built.
        trained: What a run that goes on from a checkpoint was trained with so far; that stays.

    Raises:
        PlanError: The plan asks for what the data does not allow.
    """
    chosen = choose_scaling(
        plan.scale, dataset.value_range, preprocessing(model, declared=dataset.value_range.declared)
    )
    if trained is None or (before := recorded_scale(plan, trained, model)) == chosen.factor:
        return chosen
    same = scaling_by(before, dataset.value_range.noun)
    return Scaling(
        before, same.text, f"{same.text}, as the run was trained before; in a new run they would be {chosen.text}"
    )


def scale_of_data(plan: Plan, dataset: Dataset) -> float:
    """What examples are multiplied with for a model without a preprocessing of its own."""
    return choose_scaling(plan.scale, dataset.value_range).factor


def recorded_scale(plan: Plan, trained: InputSpec, model: keras.Model) -> float:
    """What raw examples were multiplied with when a run was trained.

    Runs of programs without ``scale`` in their plans recorded the scale of the data even for models with a
    preprocessing of their own, which took raw examples.
    """
    return trained.scale if plan.scale == "0-1" or not preprocessing(model) else 1.0
