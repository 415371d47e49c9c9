"""Which other execution mode is tried, on devices that are not here."""

from types import SimpleNamespace
from typing import Any

import keras
import pytest

from accel_engine.data.structure import ArraySpec
from accel_engine.plan import Plan
from accel_engine.training.autotuning import candidates
from accel_engine.training.autotuning.candidates import alternative_mode
from accel_engine.training.core.loop import ExecutionMode


@pytest.mark.parametrize(
    ("replicas", "newer", "tried"),
    [
        (1, False, ExecutionMode(xla=True)),
        (2, False, None),  # XLA may hang or abort
        (1, True, None),  # XLA aborts
    ],
)
def test_xla_is_tried_on_one_gpu_for_which_the_build_has_code(
    monkeypatch: pytest.MonkeyPatch, replicas: int, newer: bool, tried: ExecutionMode | None
) -> None:
    monkeypatch.setattr(candidates, "are_newer_than_build", lambda: newer)
    assembly: Any = SimpleNamespace(
        plan=Plan(),
        has_custom_train_step=False,
        single_process=True,
        on_tpu=False,
        on_cpu=False,
        replicas=replicas,
        strategy=None,
        dataset=SimpleNamespace(spec=ArraySpec((4,), "float32")),
        model=keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]),
    )
    assert alternative_mode(assembly, ExecutionMode()) == tried
