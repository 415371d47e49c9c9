"""Models that are no better than a prediction that has learned nothing of the inputs."""

import math
from collections.abc import Iterator

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding
from accel_engine.advice.quality.findings import quality_finding, set_field, text_cure
from accel_engine.advice.quality.learning import Learning
from accel_engine.events import Validated
from accel_engine.plan.monitor import is_better_lower
from accel_engine.words import numbers

FEW_VALIDATIONS = 3
"""Validations of a live run before which it is not judged: it may only have begun."""

MAE, RMSE, R2 = "mean_absolute_error", "root_mean_squared_error", "r2_score"

ABSOLUTE_LOSSES = frozenset((MAE, "mae", "huber", "log_cosh", "mean_absolute_percentage_error"))
"""Losses of a regression that are least for medians, so that absolute errors tell what was learned."""

LAST_VALUE = "last known value"
"""The name of the baseline of time series."""

_ROUNDING = 1e-6  # of a metric; Keras computes them in float32, which has seven digits


def below_baseline(learning: Learning) -> Iterator[Finding]:
    """No validation has a metric that is better than the baseline of the same examples."""
    judged = [(each, names) for each in learning.validations if (names := _judged(each, learning))]
    if not judged or (learning.recorded.info.status.live and len(judged) < FEW_VALIDATIONS):
        return
    if learning.settings.get("class_weight") or any(_beats_baseline(*each) for each in judged):
        return  # weights of classes give some accuracy away by design
    last, names = judged[-1]
    figures = (
        f"{name} is {numbers.metric(last.metrics[name] or 0.0)} in validation, and "
        f"{numbers.metric(last.baseline[name])} by the baseline"
        for name in names
    )
    yield quality_finding(
        "below-baseline",
        f"No better than the {last.baseline_name}"[:60],
        [
            Evidence(
                f"{'; '.join(figures)}; no validation was better",
                f"validation_{names[0]}",
                (learning.first, last.step + 1),
            )
        ],
        f"predicting the {last.baseline_name} for every example is as good, without a model",
        [*_cures(learning, last)],
        weight=1.0,
        confidence=Confidence.CERTAIN,
    )


def _judged(validated: Validated, learning: Learning) -> list[str]:
    """Names of the metrics to compare: of a regression, the error that its loss makes small, if there is one."""
    names = [name for name, value in validated.metrics.items() if value is not None and name in validated.baseline]
    built = learning.built
    wanted = MAE if built is not None and built.loss in ABSOLUTE_LOSSES else RMSE
    return [wanted] if wanted in names else [name for name in names if name != R2]


def _beats_baseline(validated: Validated, names: list[str]) -> bool:
    """Whether some metric is better than the baseline's."""
    for name in names:
        value, level = validated.metrics[name] or 0.0, validated.baseline[name]
        if math.isclose(value, level, rel_tol=_ROUNDING, abs_tol=_ROUNDING * _ROUNDING):
            continue
        if (value < level) if is_better_lower(name) else (value > level):
            return True
    return False


def _cures(learning: Learning, last: Validated) -> Iterator[Cure]:
    if last.baseline_name == LAST_VALUE:
        window = int(learning.settings.get("window") or 0)
        if window:
            yield set_field(
                f"Give the model more of the past: --window {2 * window}", "a longer sequence_length", window=2 * window
            )
        yield text_cure(
            "Add columns that know more of the future, such as the hour or the weekday; or train longer: --epochs"
        )
    else:
        yield text_cure(
            "See the findings below; then check that inputs and targets belong together, and train longer: --epochs",
            "Try to learn 20 examples by heart: a model that cannot is faulty itself",
        )
