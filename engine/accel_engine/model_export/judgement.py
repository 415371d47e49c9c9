"""Judges an exported model: each value of its outputs by its own scale, and its loss and metrics."""

import math
from collections.abc import Mapping
from typing import Any

from accel_engine.data.data_options import OF_CLASSES
from accel_engine.data.structure import flatten
from accel_engine.inference.output_differences import Divisor
from accel_engine.models.exported_model import PROBABILITIES
from accel_engine.plan.monitor import is_better_lower
from accel_engine.private_names.keras_names import loss_takes_logits
from accel_engine.run.store.series_names import is_loss
from accel_engine.trained.open_trained import TrainedModel
from accel_engine.training.core.task import BY_RANK, SEVERAL_OUTPUTS
from accel_engine.training.evaluation.reports.choice import loss_of_output, output_task, target_index
from accel_engine.words import numbers

LEAST_WORSENING = 0.01
"""How much worse a loss or metric may be, at least: see :func:`worsened`."""


def divisor_of(name: str, index: int, output: Any, trained: TrainedModel) -> Divisor:
    """How an output is compared.

    Args:
        name: Its name as it is served.
        index: Its place.
        output: Its spec, with the batch.
        trained: The trained model.
    """
    task, targets = trained.task.name, trained.dataset.spec.targets
    if name == PROBABILITIES:
        return Divisor.NONE
    if task == SEVERAL_OUTPUTS:
        loss, place = loss_of_output(trained.model.loss, name, index), target_index(targets, name, index)
        target = flatten(targets)[place] if place is not None else None
        task = output_task(loss, tuple(output.shape), target, trained.dataset.kind)
        if task in (*OF_CLASSES, *BY_RANK.values()):
            return Divisor.COLUMNS if loss_takes_logits(loss) else Divisor.NONE
    return Divisor.RANGE if task == "reconstruction" or None in output.shape[1:] else Divisor.COLUMNS


def worsened(
    found: Mapping[str, float],
    expected: Mapping[str, float],
    constant: Mapping[str, float],
    tolerance: float,
    examples: int,
) -> str:
    """The loss or metric that is so much worse that the outputs are ruined; empty for none.

    A change of a loss or an error counts in parts of its value, or of its difference from constant outputs,
    whichever is larger; of other metrics, such as accuracies, in parts of their value, but at least of 1.

    Args:
        found: The loss and the metrics.
        expected: Those of the trained model.
        constant: Those of constant outputs, the mean of the trained model's; empty if unknown.
        tolerance: How large the change may be; but :data:`LEAST_WORSENING` and one example are always allowed.
        examples: Their number.
    """
    limit = max(tolerance, LEAST_WORSENING, 1.5 / max(examples, 1))
    for name, before in expected.items():
        after, lower = found.get(name, math.nan), is_loss(name) or is_better_lower(name)
        if lower is None or not math.isfinite(before):
            continue
        gained = constant.get(name, before) - before
        scale = max(abs(before), (abs(gained) if math.isfinite(gained) else 0.0) if lower else 1.0)
        worse = after - before if lower else before - after
        if not worse <= limit * scale:
            return f"the {name} is {numbers.metric(after)}, not {numbers.metric(before)}"
    return ""
