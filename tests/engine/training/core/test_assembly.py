"""What does not fit together is refused once the data is read."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.config import is_op_determinism_enabled

from accel_engine import data
from accel_engine.data.dataset import Split
from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core.assembly import assemble

from .streams import EXAMPLES, ROWS, Y, dataset


def test_steps_of_texts_cannot_be_compiled_with_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "load", lambda *_: dataset(Split(np.array(["a text"] * EXAMPLES), Y)))

    with pytest.raises(PlanError, match="XLA cannot compile operations on texts"):
        assemble(resolve(Plan(xla="on")), ("CPU:0",), None)


@pytest.mark.parametrize("value", ["on", "off"])
def test_the_arithmetic_of_the_process_is_the_plan_s(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setattr(data, "load", lambda *_: dataset(ROWS))
    assemble(resolve(Plan(model="linear", deterministic=value, tf32=value)), ("CPU:0",), None)
    assert is_op_determinism_enabled() is tf.config.experimental.tensor_float_32_execution_enabled() is (value == "on")
