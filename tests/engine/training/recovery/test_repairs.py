"""The repairs of a run that is out of memory, without training it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import tensorflow as tf

from accel_engine.errors import DataError, ModelError, PlanError
from accel_engine.plan import Plan
from accel_engine.plan.memory_remedies import MemoryFacts
from accel_engine.run import RunWriter, create
from accel_engine.training.recovery import out_of_memory
from accel_engine.training.recovery.out_of_memory import OutOfMemory

FACTS = MemoryFacts(batch=64, can_split=True, splitting_changes=("dropout",), can_recompute=True)
OOM = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")


class Model:
    """Stands for a model."""


@pytest.fixture
def writer() -> Iterator[RunWriter]:
    with closing(RunWriter(create(Plan()))) as opened:
        yield opened


def repairs(writer: RunWriter, monkeypatch: pytest.MonkeyPatch, facts: MemoryFacts = FACTS) -> OutOfMemory:
    monkeypatch.setattr(out_of_memory, "memory_facts", lambda _: facts)
    monkeypatch.setattr(out_of_memory, "has_parts", lambda _: True)
    made = OutOfMemory(writer)
    made.note(cast(Any, SimpleNamespace(model=Model())))
    return made


def resolved(plan: Plan, *, processes: bool = False, streams_data: bool = False) -> Any:
    return SimpleNamespace(plan=plan, strategy=SimpleNamespace(processes=processes), streams_data=streams_data)


@pytest.mark.parametrize(
    "error",
    [
        ModelError("rematerialization: the part with layer a computes RandomUniform, which cannot be repeated"),
        PlanError("remat", "on", "the model has a custom train_step"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_model_that_cannot_be_computed_again_is_split_instead(
    writer: RunWriter, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    made = repairs(writer, monkeypatch)
    assert made.repair(error, resolved(Plan()), 0) is None  # the user's plan says so
    first = made.repair(OOM, resolved(Plan()), 0)
    assert first is not None
    assert first.changes == {"remat": "on"}

    second = made.repair(error, resolved(Plan(remat="on")), 0)
    assert second is not None
    assert second.changes == {"remat": "auto", "micro_batches": 2}
    assert second.reason.startswith("rematerialization is impossible: ")
    third = made.repair(OOM, resolved(Plan(micro_batches=2)), 0)
    assert third is not None
    assert third.changes == {"micro_batches": 4}


def test_other_errors_end_the_run_after_a_repair_too(writer: RunWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    made = repairs(writer, monkeypatch)
    assert made.repair(OOM, resolved(Plan()), 0) is not None
    for error in (DataError("a damaged file"), ValueError("out of memory"), ModelError("no loss")):
        assert made.repair(error, resolved(Plan(remat="on")), 0) is None


def test_workers_and_on_oom_fail_end_the_run(writer: RunWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    made = repairs(writer, monkeypatch)
    assert made.repair(OOM, resolved(Plan(), processes=True), 0) is None
    assert made.repair(OOM, resolved(Plan(on_oom="fail")), 0) is None


def test_smaller_steps_do_not_help_the_host_of_an_accelerator(
    writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = repairs(writer, monkeypatch, replace(FACTS, on_host=False))
    assert made.repair(MemoryError(), resolved(Plan()), 0) is None
    assert made.repair(OOM, resolved(Plan()), 0) is not None


def test_data_that_cannot_be_cached_is_streamed(writer: RunWriter) -> None:
    def choose_feed() -> None:
        raise OOM

    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        choose_feed()
    made = OutOfMemory(writer)  # the model was not assembled
    repair = made.repair(caught.value, resolved(Plan()), 0)
    assert repair is not None
    assert (repair.streams_data, repair.changes) == (True, {})
    assert made.repair(caught.value, resolved(Plan(), streams_data=True), 0) is None
    assert made.repair(MemoryError(), resolved(Plan()), 0) is None
