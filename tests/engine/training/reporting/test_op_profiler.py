"""Profiles of runs that train: what they store, and that nothing of the training changes."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from accel_engine.events import CommandAnswered
from accel_engine.op_profile.options import MAX_SECONDS, SEVERAL_PROCESSES
from accel_engine.plan import Plan
from accel_engine.run import diagnostics
from accel_engine.run.diagnostics.model_items import LAYERS, OpProfile
from accel_engine.run.engine.commands import Command
from accel_engine.training.core import loop
from accel_engine.training.reporting import mfu, op_profiler

from ..conftest import Gym, Trained

PLAN = Plan(model="mlp", epochs=4, batch_size=256, last_batch="drop", validation="off")
"""Twenty steps."""


def stored(trained: Trained) -> OpProfile:
    found = diagnostics.read(trained.directory).operations
    assert found is not None
    return found


def answers(trained: Trained) -> list[tuple[bool, str]]:
    return [(each.obeyed, each.answer) for each in trained.all(CommandAnswered) if each.command == "profile"]


@pytest.fixture(autouse=True)
def _peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A known roofline, as other tests use the CPU."""
    monkeypatch.setattr(op_profiler, "roofline", lambda *_: mfu.Roofline(1e12, "in a test", 5e10, "in a test, too"))


def test_a_profile_until_the_end_changes_no_loss_and_tells_the_layers(gym: Gym) -> None:
    plain = gym.train_once(PLAN)
    trained = gym.train(PLAN, at={6: [("profile", MAX_SECONDS)], 8: [("profile", 1.0)]})

    for name, values in plain.series.items():
        assert np.array_equal(trained.series[name], values), name
    profile, steps = stored(trained), len(plain.series["loss"])
    refused, (obeyed, answer) = answers(trained)
    assert refused == (False, "the run is being profiled already")
    assert obeyed
    assert steps == 20
    assert answer.startswith("profiled 13 steps in ")  # a chunk ends with the seventh
    assert profile.steps == 13
    assert profile.notes[0] == "Training ended: the trace is shorter."
    assert profile.grouped_by == LAYERS
    layers = diagnostics.read(trained.directory).layers
    assert layers is not None
    flops = {each.name: each.flops for each in layers.layers if each.flops}
    dense = {each.name: each.flops for each in profile.groups if each.flops}
    assert dense.keys() == flops.keys()
    assert list((trained.directory / profile.trace).glob("*.xplane.pb"))
    assert (profile.peak_flops, profile.peak_bytes, profile.peak_source) == (1e12, 5e10, "in a test")


def test_validations_and_checkpoints_are_apart_from_the_steps(gym: Gym) -> None:
    plan = PLAN.replace(validation="epoch", checkpoint_every="1 epoch", epochs=3)
    trained = gym.train(plan, at={3: [("profile", MAX_SECONDS)]})
    profile, layers = stored(trained), diagnostics.read(trained.directory).layers
    assert layers is not None
    names = {each.name for each in layers.layers}
    assert {each.name for each in profile.groups} <= {*names, "adam", "compile_loss", ""}
    assert not [each.name for each in profile.operations if each.name.startswith("mlp")]
    products = [each for each in profile.operations if each.flops]
    assert products
    assert {each.count for each in products} == {profile.steps}
    kinds = [note.split(" took ")[0] for note in profile.notes if "apart from the steps" in note]
    assert kinds == ["3 validations", "3 checkpoints"]


def test_chunks_are_scheduled_ahead_during_a_trace(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = gym.train_once(PLAN)
    monkeypatch.setattr(loop, "schedules_ahead", lambda _: True)
    monkeypatch.setattr(op_profiler, "MAX_OPERATIONS", 1_000_000)
    trained = gym.train(PLAN, at={4: [("profile", MAX_SECONDS)]})
    assert np.array_equal(trained.series["loss"], plain.series["loss"])
    ((obeyed, answer),) = answers(trained)
    assert obeyed, answer
    assert 0 < (stored(trained).steps or 0) <= 16


def test_a_pause_ends_the_trace(gym: Gym) -> None:
    trained = gym.train(PLAN, at={4: [("profile", MAX_SECONDS)], 8: [("pause", 0.01), ("profile", 1.0)]})
    assert stored(trained).steps == 5
    assert stored(trained).notes[0] == "The run was paused: the trace is shorter."
    assert min(answers(trained)) == (False, "the run is paused: it takes no steps")


def test_a_run_of_several_processes_is_refused() -> None:
    told: list[tuple[bool, str]] = []
    reporter: Any = SimpleNamespace(answer_command=lambda _, *, obeyed, answer: told.append((obeyed, answer)))
    assembly: Any = SimpleNamespace(single_process=False)
    op_profiler.OpProfiler(assembly, reporter, (), tuple).request(Command(1, 0.0, "ann@box", "profile", 1.0))
    assert told == [(False, SEVERAL_PROCESSES)]


def test_an_immediate_stop_waits_for_no_profile(gym: Gym) -> None:
    trained = gym.train(PLAN, at={4: [("profile", MAX_SECONDS)], 7: [("stop_now",)]})
    assert answers(trained) == [(False, "the run was stopped immediately")]
    assert diagnostics.read(trained.directory).operations is None
    tf.profiler.experimental.stop(save=False)  # else the process would have ended


def test_a_trace_of_many_operations_ends_early(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_profiler, "MAX_OPERATIONS", 1)
    trained = gym.train(PLAN.replace(epochs=1), at={2: [("profile", MAX_SECONDS)]})
    assert stored(trained).steps == 2
    assert stored(trained).notes[0] == f"{op_profiler.FULL}: the trace is shorter."


@pytest.mark.parametrize("seconds", [0.0, MAX_SECONDS + 1])
def test_other_lengths_are_refused(gym: Gym, seconds: float) -> None:
    trained = gym.train(PLAN.replace(epochs=1), at={2: [("profile", seconds)]})
    assert answers(trained) == [(False, "a profile takes from 0.1 to 30 seconds")]
    assert diagnostics.read(trained.directory).operations is None


def test_a_trace_that_cannot_be_written_does_not_end_the_run(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(op_profiler, "Trace", fail)
    trained = gym.train(PLAN.replace(epochs=1), at={2: [("profile", 1.0)]})
    assert answers(trained) == [(False, "[Errno 28] No space left on device")]
    assert trained.ended.epochs == 1
