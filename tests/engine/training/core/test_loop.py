from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from accel_engine.events import CheckpointSaved, EpochEnded, LearningRateChanged, ModelBuilt, Outcome
from accel_engine.plan import Plan
from accel_engine.training.core import batches, feed, loop
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.compiled_chunk import MAX_STEPS, ChunkSize
from accel_engine.training.core.loop import ChunkResult, Loop

from ..conftest import Gym

PLAN = Plan(model="mlp", epochs=2, optimizer="sgd", learning_rate=0.05, validation="off")


def test_the_chunk_size_does_not_change_results(gym: Gym, random_model: str) -> None:
    plan = PLAN.replace(model=random_model, batch_size=8, steps_per_epoch=70)
    gym.steps = 1
    one_by_one = gym.train(plan)
    gym.steps = 64
    by_many = gym.train(plan)

    assert [chunk.count for chunk in one_by_one.chunks] == [1] * 140
    assert [chunk.count for chunk in by_many.chunks] == [64, 6] * 2  # of 179 whole batches
    np.testing.assert_array_equal(one_by_one.series["loss"], by_many.series["loss"])
    np.testing.assert_array_equal(one_by_one.series["accuracy"], by_many.series["accuracy"])


@pytest.mark.parametrize(
    ("strategy", "replicas"),
    [("mirrored", 2), ("central-storage", 2), pytest.param("mirrored", 4, marks=pytest.mark.campaign)],
)
def test_replicas_train_like_one_device(gym: Gym, strategy: str, replicas: int) -> None:
    """Also in the last step of an epoch, whose 29 examples they cannot divide evenly."""
    plan = PLAN.replace(epochs=5)
    alone = gym.train_once(plan)
    shared = gym.train(plan.replace(strategy=strategy, virtual_cpus=replicas))

    assert len(alone.series["loss"]) >= 100
    np.testing.assert_allclose(alone.series["loss"], shared.series["loss"], atol=1e-4)
    np.testing.assert_allclose(alone.series["accuracy"], shared.series["accuracy"], atol=1e-6)


@pytest.mark.parametrize("replicas", [2, pytest.param(1, marks=pytest.mark.campaign)])
def test_streamed_and_cached_data_give_the_same_batches(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, replicas: int
) -> None:
    plan = PLAN.replace(strategy="mirrored" if replicas == 2 else "one-device", virtual_cpus=replicas)
    resident = gym.train_once(plan)
    monkeypatch.setattr(feed, "CACHE_SHARE", 0.0)
    streamed = gym.train(plan)

    assert [trained.only(ModelBuilt).feed for trained in (resident, streamed)] == ["resident", "streamed"]
    np.testing.assert_allclose(resident.series["loss"], streamed.series["loss"], atol=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {"augmentation": ("flip",), "class_weight": ("balanced",)},
        {"strategy": "mirrored", "virtual_cpus": 2, "is_ahead": True},
        pytest.param({"strategy": "mirrored", "virtual_cpus": 2}, marks=pytest.mark.campaign),
        pytest.param({"xla": "on", "is_ahead": True}, marks=pytest.mark.campaign),
        pytest.param({"xla": "off", "is_ahead": True}, marks=pytest.mark.campaign),
        pytest.param({"xla": "off", "is_ahead": True, "feed": "streamed"}, marks=pytest.mark.campaign),
        pytest.param({"skip_steps": ("4", "7", "9")}, marks=pytest.mark.campaign),
        pytest.param({"xla": "on", "micro_batches": 2}, marks=pytest.mark.campaign),
        pytest.param({"strategy": "central-storage", "virtual_cpus": 2}, marks=pytest.mark.campaign),
        pytest.param({"feed": "streamed"}, marks=pytest.mark.campaign),
    ],
)
def test_a_chunk_of_several_epochs_changes_nothing(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, random_model: str, changes: dict[str, Any]
) -> None:
    """Also where commands, checkpoints, and an engine that is lost after one, interrupt it.

    And where a chunk is scheduled while the one before it runs, as on a GPU: a command then comes a chunk later.
    """
    divided, divisions = ChunkResult.divided, list[int]()
    if is_ahead := changes.get("is_ahead", False):
        monkeypatch.setattr(loop, "schedules_ahead", lambda _: True)
    changes = {name: value for name, value in changes.items() if name != "is_ahead"}
    fetch, pending = Loop._fetch, list[int]()
    monkeypatch.setattr(Loop, "_fetch", lambda each, result: pending.append(len(each._pending)) or fetch(each, result))
    if changes.pop("feed", "") == "streamed":
        monkeypatch.setattr(feed, "CACHE_SHARE", 0.0)
    monkeypatch.setattr(
        ChunkResult, "divided", lambda chunk, counts: divisions.append(len(counts)) or divided(chunk, counts)
    )
    plan = PLAN.replace(model=random_model, batch_size=256, last_batch="drop", epochs=6, checkpoint_every="12 steps")
    plan = plan.replace(**changes)
    commands, obeyed = [("checkpoint",), ("learning_rate", 0.01)], 12 if is_ahead else 8
    gym.steps = 8

    lost = gym.train(plan, at={8: commands, 20: [("stop_now",)]})
    spanning = gym.train(plan, run=lost.directory)

    assert (lost.ended.steps, max(divisions), max(pending)) == ((24, 2, 1) if is_ahead else (20, 2, 0))
    assert lost.all(LearningRateChanged)[-1].step == obeyed
    divisions.clear()
    gym.steps = 1
    monkeypatch.setattr(loop, "schedules_ahead", lambda _: False)
    each = gym.train(plan, at={obeyed: commands})
    assert set(divisions) == {1}
    assert spanning.series.keys() == each.series.keys()
    for name, values in each.series.items():
        np.testing.assert_array_equal(spanning.series[name], values)
    assert spanning.series["learning_rate"].tolist() == [np.float32(0.05)] * obeyed + [np.float32(0.01)] * (
        len(values) - obeyed
    )
    ends = {end.epoch: end for end in spanning.all(EpochEnded)}  # the later one of an epoch that was trained again
    assert [(end.epoch, end.step) for end in ends.values()] == [(end.epoch, end.step) for end in each.all(EpochEnded)]
    for other in each.all(EpochEnded):
        assert ends[other.epoch].metrics == pytest.approx(other.metrics, rel=1e-6)
    saved = [[event.step for event in trained.all(CheckpointSaved)] for trained in (spanning, each)]
    assert saved[0] == saved[1] == [obeyed, 12, 24, len(values)]
    took = sum(chunk.ended - chunk.started for chunk in spanning.chunks)
    assert sum(end.seconds for end in ends.values()) == pytest.approx(took, rel=1e-4)


def test_a_run_that_ends_waits_for_the_chunk_that_is_running(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    abandon, abandoned = Loop._abandon, list[bool]()

    def wait(running: Loop, result: Any) -> None:
        abandon(running, result)
        abandoned.append(result.done())

    monkeypatch.setattr(Loop, "_abandon", wait)
    plan = PLAN.replace(learning_rate=1e20, xla="off", on_nan="stop")
    alone = gym.train(plan)
    monkeypatch.setattr(loop, "schedules_ahead", lambda _: True)
    ahead = gym.train(plan)

    assert abandoned == [True]
    assert (ahead.ended.outcome, ahead.ended.reason) == (Outcome.FAILED, alone.ended.reason)
    assert ahead.ended.steps == alone.ended.steps == len(ahead.series["loss"])


def test_what_runs_elsewhere_and_alone_is_scheduled_ahead() -> None:
    def ahead(**changes: bool) -> bool:
        known = {"coordinated": False, "on_gpu": True, "single_process": True, "has_custom_train_step": False}
        return loop.schedules_ahead(cast(Assembly, SimpleNamespace(**(known | changes))))

    assert ahead()
    assert ahead(coordinated=True, on_gpu=False, single_process=False)
    assert not ahead(on_gpu=False)
    assert not ahead(single_process=False)
    assert not ahead(has_custom_train_step=True)


@pytest.mark.parametrize("share", [0.25, 0.0])
def test_an_epoch_in_segments_is_the_same_epoch(gym: Gym, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    plan = PLAN.replace(batch_size=256, last_batch="drop", steps_per_epoch=13)
    whole = gym.train_once(plan)
    monkeypatch.setattr(feed, "CACHE_SHARE", share)
    monkeypatch.setattr(batches, "MAX_ROWS", 1)
    stopped = gym.train(plan, at={20: [("stop",)]})

    resumed = gym.train(plan, run=stopped.directory)

    # The second epoch begins after three of the five steps of a pass, where the first one ended.
    assert [chunk.count for chunk in resumed.chunks] == [2, 2, 1, 2, 2, 1, 2, 1, 2, 2, 2, 1, 2, 2, 1, 1]
    np.testing.assert_allclose(resumed.series["loss"], whole.series["loss"], atol=1e-6)


def test_a_smaller_last_batch_is_a_chunk_of_its_own(gym: Gym) -> None:
    gym.steps = 64
    trained = gym.train(PLAN.replace(batch_size=256, steps_per_epoch=13))

    # The second epoch begins after one of the six steps of a pass, where the first one ended.
    assert [chunk.count for chunk in trained.chunks] == [5, 1, 5, 1, 1, 4, 1, 5, 1, 2]


@pytest.mark.parametrize("share", [pytest.param(0.25, marks=pytest.mark.campaign), 0.0], ids=["resident", "streamed"])
def test_replicas_share_a_smaller_last_batch(gym: Gym, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """1436 examples, as many on each of four replicas: the last step has 28."""
    monkeypatch.setattr(feed, "CACHE_SHARE", share)
    plan = PLAN.replace(data="synthetic:8x8x1:10:1436")
    alone = gym.train_once(plan)
    shared = gym.train(plan.replace(strategy="mirrored", virtual_cpus=4))

    assert len(shared.series["loss"]) == 46
    np.testing.assert_allclose(shared.series["loss"], alone.series["loss"], atol=1e-4)
    np.testing.assert_allclose(shared.series["accuracy"], alone.series["accuracy"], atol=1e-6)


@pytest.mark.campaign  # test_compiled_chunk.py has more of it
def test_xla_gives_the_same_results(gym: Gym) -> None:
    plain = gym.train_once(PLAN)
    compiled = gym.train(PLAN.replace(xla="on"))

    np.testing.assert_allclose(plain.series["loss"], compiled.series["loss"], atol=1e-5)


def test_a_chunk_size_converges_to_its_target() -> None:
    size = ChunkSize(target=0.05)

    for _ in range(10):
        size.update(size.steps, size.steps * 0.001)

    assert size.steps == pytest.approx(50, abs=1)


def test_a_chunk_size_grows_slowly_and_shrinks_at_once() -> None:
    size = ChunkSize(target=0.05)
    size.update(1, 1e-6)
    assert size.steps == 4

    size.update(4, 10.0)
    assert size.steps == 1


def test_a_chunk_size_is_bounded() -> None:
    size = ChunkSize(target=0.05, minimum=3)
    assert size.steps == 3
    size.update(3, 10.0)
    assert size.steps == 3

    for _ in range(10):
        size.update(size.steps, 0.0)
    assert size.steps == MAX_STEPS
