"""The metric that a plan monitors: of training, or of validation."""

import re
from collections.abc import Container, Sequence

from accel_engine.errors import FieldValue, Words
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.task_choices import ALWAYS_MEASURED, LOSSES_OF, METRICS, METRICS_OF, is_of_training, metric_name

_OF_STEPS = ("gradient_norm", "learning_rate")
"""What training records besides metrics."""

NOTHING_TO_VALIDATE: Words = (
    "there is nothing to validate: monitor a metric of training, such as ",
    FieldValue("monitor", "loss"),
)

_LOWER_IS_BETTER = re.compile(
    r"loss|error|perplexity|divergence|(cross)?entropy|poisson|hinge|(log)?cosh|mae|mse|rmse|mape|msle|kld|nll|wer|cer|fid|"
    r"latency|p50|p90|p99|p999|memory|energy|seconds"
)
_AT_MOST_ONE = (
    r"acc|accuracy|auc|auroc|auprc|f1|fbeta|iou|miou|dice|precision|recall|sensitivity|specificity|r2|similarity|"
    r"ssim|mrr|ndcg|kappa|correlation|map"
)
_HIGHER_IS_BETTER = re.compile(rf"{_AT_MOST_ONE}|score|bleu|rouge|psnr|hits|throughput")
"""Words of metrics' names. The losses come first: a ``cosine_similarity_loss`` is a loss."""


def is_better_lower(name: str, mode: object = "auto") -> bool | None:
    """Whether lower values of a metric are better; ``None`` if its name does not tell.

    Args:
        name: The metric.
        mode: The plan's ``monitor_mode``, if it monitors the metric: ``min``, ``max``, or anything else to judge by the
            name.
    """
    if mode in ("min", "max"):
        return mode == "min"
    words = name.lower().replace("io_u", "iou").split("_")  # Keras' name of IoU
    if name.endswith(("positives", "negatives")):
        return "false" in words
    if any(_LOWER_IS_BETTER.fullmatch(word) for word in words):
        return True
    return False if any(_HIGHER_IS_BETTER.fullmatch(word) for word in words) else None


def unknown_direction(monitor: str) -> Words:
    """The message about a metric whose name does not tell which values are better."""
    return f"the name {monitor} does not tell whether lower values are better: set ", FieldValue("monitor_mode")


def is_at_most_one(name: str) -> bool:
    """Whether a metric is 1 at best, such as an accuracy, unless it is recorded in percent."""
    known = any(re.fullmatch(_AT_MOST_ONE, word) for word in name.lower().replace("io_u", "iou").split("_"))
    return known and is_better_lower(name) is False


def wrong_monitor(plan: PlanFields, task: str, chosen: Container[str]) -> Words:
    """Why a plan cannot monitor its metric, if that is known before the model is built; empty if it can.

    Args:
        plan: The plan.
        task: What a model of the catalogue learns; ``auto`` if it is unknown, and for the user's own model.
        chosen: The fields that may have other values; a run that continues cannot measure more metrics.
    """
    name = metric_name(plan.monitor).removeprefix("validation_")
    of_training = is_of_training(plan.monitor)
    # Without a task that is known, the loss and metrics may be any.
    if task not in LOSSES_OF or not name or (of_training and name in _OF_STEPS):
        return ()
    measured = measured_names(plan, task)
    words = unmeasured(name if of_training else f"validation_{name}", measured, measured)
    if not words or "metrics" not in chosen or name not in METRICS_OF.get(task, ()):
        return words
    add = FieldValue("metrics", ",".join((*_fitting(plan, task), name)))
    return f"{name} is not measured; measured are {', '.join(measured)}: add ", add


def unmeasured(monitor: str, trained: Sequence[str], validated: Sequence[str]) -> Words:
    """Why a metric cannot be monitored, and what can; empty if it can.

    Args:
        monitor: The metric, with ``validation_`` before one of validation.
        trained: What is measured in training.
        validated: What is measured at validation, without a prefix.
    """
    name = monitor.removeprefix("validation_")
    of_training = name == monitor
    known = trained if of_training else validated
    if name in known:
        return ()
    if of_training and name in validated:
        return f"{name} is measured at validation only: use ", FieldValue("monitor", f"validation_{name}")
    usual = "accuracy" if "accuracy" in known else "loss"
    use = FieldValue("monitor", usual if of_training else f"validation_{usual}")
    return f"{name} is not measured; measured are {', '.join(known)}: use ", use


def measured_names(plan: PlanFields, task: str) -> tuple[str, ...]:
    """The loss and metrics that a model of the catalogue measures, without a prefix."""
    return tuple(dict.fromkeys(("loss", *ALWAYS_MEASURED.get(task, ()), *_fitting(plan, task))))


def _fitting(plan: PlanFields, task: str) -> tuple[str, ...]:
    """The metrics of a plan that fit a task; all if it is unknown."""
    return tuple(name for name in plan.metrics if name in METRICS_OF.get(task, METRICS))
