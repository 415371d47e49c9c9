"""Importance of parameters, from trials that a script made."""

from dataclasses import replace

import numpy as np
import pytest

from accel_engine.errors import AccelError
from accel_engine.search.definition import Objective, Parameter
from accel_engine.search.results import importance
from accel_engine.search.trial import Trial, TrialState

PARAMETERS = (
    Parameter("learning_rate", low=1e-4, high=1e-1, log=True),
    Parameter("batch_size", choices=(32, 64)),
    Parameter("weight_decay", low=1e-6, high=1e-2, log=True),
)
MONITOR = Objective("validation_accuracy", maximize=True)


def trials(count: int) -> list[Trial]:
    """Their accuracy depends on the learning rate only."""
    random = np.random.default_rng(0)
    made = []
    for number in range(count):
        rate = 10 ** random.uniform(-4, -1)
        values = {
            "learning_rate": float(rate),
            "batch_size": int(random.choice((32, 64))),
            "weight_decay": float(10 ** random.uniform(-6, -2)),
        }
        accuracy = 0.9 - 0.1 * abs(np.log10(rate) + 2.5)
        made.append(Trial(number, "", TrialState.FINISHED, values, {MONITOR.name: float(accuracy)}))
    return made


def test_the_parameter_that_matters_comes_first() -> None:
    found = trials(80)
    failed = replace(found[1], number=81, state=TrialState.FAILED, objectives={})
    shares = importance(PARAMETERS, MONITOR, [*found, failed])
    assert next(iter(shares)) == "learning_rate"
    assert shares["learning_rate"] > 0.7
    assert sum(shares.values()) == pytest.approx(1.0)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_too_few_trials_say_nothing() -> None:
    with pytest.raises(AccelError, match="needs 10 ended trials that can be compared; so far 4"):
        importance(PARAMETERS, MONITOR, trials(4))
