"""Rules of advice on models that learn poorly.

The rules in :data:`CAUSES` say why a model learns nothing, or badly: the first that applies is the reason, and later
ones would only name its effects, as :data:`EFFECTS` may. :data:`OTHERS` always apply.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from accel_engine.advice.finding import Confidence, Finding
from accel_engine.advice.quality.baseline_rules import below_baseline
from accel_engine.advice.quality.batch_rules import few_updates, gradient_noise, small_statistics
from accel_engine.advice.quality.data_rules import (
    initial_loss_high,
    inputs_alike,
    inputs_not_finite,
    inputs_not_scaled,
    targets_alike,
    targets_not_scaled,
)
from accel_engine.advice.quality.fit_rules import too_few_examples, underfitting
from accel_engine.advice.quality.gradient_rules import exploding_gradients, vanishing_gradients
from accel_engine.advice.quality.label_rules import imbalance, label_noise, labels_unrelated
from accel_engine.advice.quality.learning import Learning, learning_of
from accel_engine.advice.quality.loss_rules import constant_output, diverging, loss_flat, spikes
from accel_engine.advice.quality.number_rules import has_failed, not_a_number
from accel_engine.advice.quality.order_rules import not_shuffled
from accel_engine.advice.quality.output_rules import wrong_output
from accel_engine.advice.quality.rate_rules import plateau, rate_high, rate_low
from accel_engine.advice.quality.script_rules import fewer_batches, fit_faults
from accel_engine.advice.quality.split_rules import (
    duplicates,
    leak,
    validation_better,
    validation_shift,
)
from accel_engine.advice.quality.validation_rules import overfitting, stopped_late
from accel_engine.advice.recorded import Recorded
from accel_engine.advice.rule import FailedRule, Rule, RulesFailedError, apply_rules

LearningRule: TypeAlias = Callable[[Learning], Iterator[Finding]]

CAUSES: tuple[LearningRule, ...] = (
    inputs_not_finite,
    inputs_alike,
    targets_alike,
    wrong_output,
    inputs_not_scaled,
    targets_not_scaled,
    labels_unrelated,
    not_shuffled,
    initial_loss_high,
    vanishing_gradients,
    rate_high,
    rate_low,
    not_a_number,
    diverging,
    constant_output,
    few_updates,
    loss_flat,
)
"""Why a model learns nothing or badly, the most specific reason first."""

EFFECTS: tuple[LearningRule, ...] = (
    spikes,
    exploding_gradients,
    underfitting,
    label_noise,
    imbalance,
    overfitting,
    too_few_examples,
    stopped_late,
    plateau,
    validation_better,
)
"""What may be the effect of one of these, or of a validation unlike training."""

NOT_A_NUMBER = "not-a-number"
"""The finding on losses that are not finite."""

OTHERS: tuple[LearningRule, ...] = (
    below_baseline,
    leak,
    validation_shift,
    duplicates,
    small_statistics,
    gradient_noise,
    fit_faults,
    fewer_batches,
)
"""What can be found beside anything else."""


def _advise_on_model(recorded: Recorded) -> Iterator[Finding]:
    """The findings on how a run has learned.

    Raises:
        RulesFailedError: Rules failed, after all findings of the others.
    """
    if recorded.info.bench:
        return
    failed = list[FailedRule]()
    yield from _findings(learning_of(recorded), failed)
    if failed:
        raise RulesFailedError(failed) from failed[0].error


def _findings(learning: Learning, failed: list[FailedRule]) -> Iterator[Finding]:
    cause = next(apply_rules(CAUSES, learning, failed), None)
    others = list(apply_rules(OTHERS, learning, failed))
    if cause is not None:
        yield cause
        if cause.id != NOT_A_NUMBER and has_failed(learning):  # why a run has failed is said in any case
            yield from apply_rules((not_a_number,), learning, failed)
    is_explained = cause is not None and cause.confidence is not Confidence.POSSIBLE
    if not is_explained and not any(finding.id == "validation-shift" for finding in others):
        yield from apply_rules(EFFECTS, learning, failed)
    yield from others


RULES: tuple[Rule, ...] = (_advise_on_model,)
"""Rules of advice on models that learn poorly."""
