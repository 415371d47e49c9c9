"""A run that ended in mid-epoch continues with the next batch, whatever the data comes from."""

from pathlib import Path

import numpy as np
import pytest

from accel_engine.data import dataset
from accel_engine.events import CheckpointSaved, ModelBuilt, Outcome
from accel_engine.plan import Plan
from accel_engine.training.core import feed
from end_to_end.gallery.make_files import climate, shapes

from .conftest import Gym

FILE = Path(__file__).with_name("source_models.py")

STREAMS = ("tf_data", "py_dataset")
OTHERS = ("generator", "endless_tf_data", "endless_generator")
"""Streams of a generator continue in test_recipe_resuming.py, too."""


def plan_of(source: str, **values: object) -> Plan:
    """Three epochs of eleven steps, or fewer where the data has more."""
    steps = {"steps_per_epoch": 11} if source.startswith("endless") else {}
    options = {"batch_size": 32, "epochs": 3, "split": "none", "validation": "off", **steps, **values}
    return Plan(model=f"{FILE}:model", data=f"{FILE}:{source}" if source.isidentifier() else source, **options)


def check_continuation(gym: Gym, plan: Plan, kind: str) -> None:
    """Compare a run with one that is lost after its last checkpoint, and then stopped, both in mid-epoch."""
    whole = gym.train(plan)
    assert whole.ended.outcome is Outcome.FINISHED, whole.ended.reason
    assert {built.feed for built in whole.all(ModelBuilt)} == {kind}
    losses = whole.series["loss"]
    assert len(losses) == whole.ended.steps > 20
    assert len(set(losses)) > 0.9 * len(losses)

    lost = gym.train(plan, at={6: [("checkpoint",)], 9: [("stop_now",)]})
    assert lost.all(CheckpointSaved)[-1].step < lost.ended.steps < 11
    stopped = gym.train(plan, at={15: [("stop",)]}, run=lost.directory)
    assert stopped.ended.outcome is Outcome.STOPPED
    assert 11 < stopped.ended.steps < 20
    np.testing.assert_array_equal(stopped.series["loss"], losses[: stopped.ended.steps])
    resumed = gym.train(plan, run=lost.directory)
    assert resumed.ended.outcome is Outcome.FINISHED, resumed.ended.reason
    np.testing.assert_array_equal(resumed.series["loss"], losses)


@pytest.mark.parametrize("source", [*STREAMS, *(pytest.param(each, marks=pytest.mark.campaign) for each in OTHERS)])
def test_a_stream_continues_where_it_was(gym: Gym, source: str) -> None:
    check_continuation(gym, plan_of(source), "streamed")


@pytest.mark.campaign  # other arrays do in test_resuming.py
@pytest.mark.parametrize("kind", ["resident", "streamed"])
def test_arrays_continue_where_they_were(gym: Gym, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    if kind == "streamed":
        monkeypatch.setattr(feed, "CACHE_SHARE", 0.0)
    check_continuation(gym, plan_of("arrays"), kind)


@pytest.mark.campaign  # rows of any source are read by the same feeds
@pytest.mark.parametrize("lazy", [False, True], ids=["resident", "lazy"])
def test_windows_continue_where_they_were(
    gym: Gym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lazy: bool
) -> None:
    climate(tmp_path)
    if lazy:
        monkeypatch.setattr(dataset, "MEMORY_SHARE", 0.0)
        monkeypatch.setattr(feed, "CACHE_SHARE", 0.0)
    plan = plan_of(str(tmp_path / "climate.csv"), target=("temperature",), time="hour", window=24, batch_size=200)
    check_continuation(gym, plan, "streamed" if lazy else "resident")


@pytest.mark.campaign
def test_files_that_are_read_lazily_continue_where_they_were(
    gym: Gym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes(tmp_path)
    monkeypatch.setattr(dataset, "MEMORY_SHARE", 0.0)
    monkeypatch.setattr(feed, "CACHE_SHARE", 0.0)
    check_continuation(gym, plan_of(str(tmp_path / "shapes"), batch_size=24), "streamed")
