"""Checks that a plan's loss, metrics and schedule fit its task and its number of steps, before training."""

from accel_engine.errors import FieldValue, Words
from accel_engine.plan.estimate import StepCounts
from accel_engine.plan.fields import PlanFields

_OF_NUMBERS = ("mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "cosine_similarity")
_LOSSES_OF_NUMBERS = (*_OF_NUMBERS, "mean_squared_logarithmic_error", "huber", "log_cosh", "poisson")
_METRICS_OF_NUMBERS = (*_OF_NUMBERS, "root_mean_squared_error", "r2_score")
_METRICS_OF_CLASSES = ("accuracy", "top_k_categorical_accuracy", "auc", "precision", "recall", "f1_score", "mean_io_u")

LOSSES_WITHOUT: dict[str, tuple[str, ...]] = {
    "regression": (
        "categorical_crossentropy",
        "binary_crossentropy",
        "categorical_focal_crossentropy",
        "binary_focal_crossentropy",
        "categorical_hinge",
        "hinge",
        "squared_hinge",
        "dice",
        "kl_divergence",
    ),
    "classification": _LOSSES_OF_NUMBERS[2:],
}
"""Losses that make no sense for a task."""

METRICS_OF: dict[str, tuple[str, ...]] = {
    "regression": _METRICS_OF_NUMBERS,
    "reconstruction": _METRICS_OF_NUMBERS[:-1],
    "classification": _METRICS_OF_CLASSES,
    "sequence": tuple(name for name in _METRICS_OF_CLASSES if name != "top_k_categorical_accuracy"),
    "segmentation": tuple(name for name in _METRICS_OF_CLASSES if name != "top_k_categorical_accuracy"),
    "multi-label": ("accuracy", "auc", "precision", "recall", "f1_score", *_OF_NUMBERS),
}
"""Metrics that a plan can name for each task."""


def misfits(plan: PlanFields, task: str, step_counts: StepCounts | None) -> dict[str, Words]:
    """Why fields of a plan do not fit the task of its data or its number of steps, by field.

    Args:
        plan: The plan.
        task: What a model of the catalogue learns; ``auto`` if it is unknown, and for the user's own model.
        step_counts: The plan's steps; ``None`` if they are unknown.
    """
    found: dict[str, Words] = {}
    total = step_counts.total_steps if step_counts else 0
    if total and plan.warmup >= total:
        steps = f"must be below the {total} steps of the run, which follow from "
        found["warmup"] = (
            steps,
            FieldValue("epochs"),
            ", ",
            FieldValue("steps_per_epoch"),
            " and ",
            FieldValue("batch_size"),
        )
    if plan.loss in LOSSES_WITHOUT.get(task, ()):
        found["loss"] = (f"{plan.loss} is not a loss of {task}",)
    if task in ("regression", "reconstruction") and plan.label_smoothing:
        found["label_smoothing"] = (f"is of classes; the data is for {task}",)
    known = METRICS_OF.get(task)
    if known is not None and (wrong := [name for name in plan.metrics if name not in known]):
        found["metrics"] = (f"{', '.join(wrong)}: the metrics of {task} are {', '.join(known)}",)
    return found
