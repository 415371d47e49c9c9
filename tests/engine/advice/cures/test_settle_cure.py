"""A run that is worse with a cure gets its plan back; from recorded series, without engines."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accel_engine.advice.cures import settle_cure as settle_cure_module
from accel_engine.advice.cures.apply_cure import AppliedCure, Method
from accel_engine.advice.cures.cure_kinds import judged_by
from accel_engine.advice.cures.settle_cure import MOST_SECONDS, SLOWER_STEPS, _End, settle_cure
from accel_engine.events import LearningRateChanged, Outcome, PlanChanged, RunEnded
from accel_engine.plan import Plan
from accel_engine.process.paused_run import read_run
from accel_engine.run import RunInfo, RunReader, RunWriter, Status, create
from accel_engine.run.directory.checkpoint_files import write_checksums
from accel_engine.run.directory.run_paths import checkpoint_steps

STEP = 1000
"""The first step with the cure."""


def trained(before: tuple[float, float], after: tuple[float, float], outcome: Outcome = Outcome.STOPPED) -> Path:
    """A run with a rate and a loss before and after a step, in chunks of ten steps, which has ended."""
    directory = create(Plan(model="mlp"))
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        at = 0.0
        for first in range(0, 2 * STEP, 10):
            rate, loss = before if first < STEP else after
            losses = np.full(10, loss, np.float32) + np.linspace(0, 0.01, 10, dtype=np.float32)
            writer.write_chunk(first, at, at + 10 / rate, {"loss": losses})
            at += 10 / rate
        writer.write_event(LearningRateChanged(time=at, step=0, learning_rate=0.01))
        writer.end(RunEnded(time=at, outcome=outcome, steps=2 * STEP, epochs=0, seconds=at))
    folder = directory / "checkpoints"
    folder.mkdir()
    for step in (STEP, 2 * STEP):
        (folder / f"step-{step}.index").write_bytes(b"i")
        (folder / f"step-{step}.data-00000-of-00001").write_bytes(b"d")
        write_checksums(folder, step)
    return directory


def cure_of(directory: Path, method: Method = Method.CONTINUED, **changes: object) -> AppliedCure:
    before = {name: getattr(Plan(model="mlp"), name) for name in changes}
    judge = judged_by(changes, on_cpu=True)
    return AppliedCure(
        directory, directory, method, changes, before, STEP, "", was_live=True, judged_by=judge, checkpoint=STEP
    )


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped runs look live."""

    def read(directory: Path) -> RunInfo:
        info = read_run(directory)
        return replace(info, status=Status.RUNNING) if info.status is Status.STOPPED else info

    monkeypatch.setattr(settle_cure_module, "read_run", read)


def reasons(directory: Path) -> list[str]:
    with closing(RunReader(directory)) as reader:
        return [event.reason for event in reader.poll().events if isinstance(event, PlanChanged)]


@pytest.mark.usefixtures("live")
def test_a_slower_run_gets_its_plan_back_and_loses_no_steps() -> None:
    directory, launched = trained((100.0, 1.0), (20.0, 1.0)), []
    settled = settle_cure(cure_of(directory, xla="on"), launch=launched.append)
    assert settled.taken_back
    assert launched == [directory]
    assert "20 examples/s after the change, 100 before: worse" in settled.text
    assert f"continues from step {2 * STEP:,} with --xla auto" in settled.text
    assert checkpoint_steps(directory) == [STEP, 2 * STEP]
    assert reasons(directory)[0].startswith("taken back: 20 examples/s")


@pytest.mark.usefixtures("live")
def test_a_run_that_unlearns_returns_to_the_checkpoint_before() -> None:
    directory, launched = trained((100.0, 1.0), (100.0, 5.0)), []
    settled = settle_cure(cure_of(directory, clip_norm=1.0), launch=launched.append)
    assert settled.taken_back
    assert launched == [directory]
    assert f"continues from step {STEP:,}" in settled.text
    assert checkpoint_steps(directory) == [STEP]


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("after", [(100.0, 0.9), (200.0, 1.0), (98.0, 1.0)])
@pytest.mark.parametrize("changes", [{"xla": "on"}, {"clip_norm": 1.0}, {"validation_every": "2 epochs"}])
def test_a_run_that_is_not_worse_keeps_the_cure(after: tuple[float, float], changes: dict[str, object]) -> None:
    directory = trained((100.0, 1.0), after)
    settled = settle_cure(cure_of(directory, **changes), launch=pytest.fail)
    assert not settled.taken_back
    assert settled.text.startswith("the cure stays: ")
    assert reasons(directory) == []


def test_a_run_that_fails_with_it_gets_its_plan_back() -> None:
    directory, launched = trained((100.0, 1.0), (100.0, 1.0), Outcome.FAILED), []
    settled = settle_cure(cure_of(directory, xla="on"), launch=launched.append)
    assert settled.taken_back
    assert launched == [directory]
    assert "failed with it" in settled.text


@pytest.mark.parametrize("changes", [{"xla": "on"}, {"clip_norm": 1.0}])
def test_a_worse_run_that_somebody_has_stopped_stays_stopped(changes: dict[str, object]) -> None:
    directory = trained((100.0, 1.0), (20.0, 5.0))
    settled = settle_cure(cure_of(directory, **changes), launch=pytest.fail)
    assert not settled.taken_back
    assert settled.text.endswith(f"worse; run {directory.name} is stopped")


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("changes", [{"remat": "on"}, {"gradient_norm": "layers"}, {"augmentation": "light"}])
def test_what_may_cost_speed_or_raises_the_loss_by_design_stays(changes: dict[str, object]) -> None:
    directory = trained((100.0, 1.0), (20.0, 5.0))
    settled = settle_cure(cure_of(directory, **changes), launch=pytest.fail)
    assert not settled.taken_back
    assert "has trained 1,000 steps" in settled.text


def test_a_run_that_had_failed_before_is_not_continued_without_the_cure() -> None:
    directory = trained((100.0, 1.0), (100.0, 1.0), Outcome.FAILED)
    settled = settle_cure(replace(cure_of(directory, remat="on"), had_failed=True), launch=pytest.fail)
    assert not settled.taken_back
    assert "failed with it, too" in settled.text


@pytest.mark.usefixtures("live")
def test_a_rate_that_a_command_has_set_is_that_of_the_checkpoint_again() -> None:
    directory, launched = trained((100.0, 1.0), (100.0, 5.0)), []
    cure = replace(cure_of(directory, Method.COMMAND, learning_rate=1.0), rate=0.01)
    assert settle_cure(cure, launch=launched.append).taken_back
    assert launched == [directory]
    with closing(RunReader(directory)) as reader:
        assert reader.info().plan_values["learning_rate"] is None


def test_time_counts_from_the_first_step_without_pauses() -> None:
    end = _End(needed=0.0)
    assert not end.is_over(0, Status.STARTING, 0.0)
    assert not end.is_over(0, Status.RUNNING, 1000.0)
    assert not end.is_over(1, Status.RUNNING, 1000.0 + MOST_SECONDS)
    assert not end.is_over(1, Status.PAUSED, 9000.0)
    assert end.is_over(1, Status.RUNNING, 9001.0)
    slow = _End(needed=100.0)
    assert not slow.is_over(1, Status.RUNNING, 0.0)
    assert not slow.is_over(1, Status.RUNNING, 100.0 * SLOWER_STEPS)
    assert slow.is_over(1, Status.RUNNING, 100.0 * SLOWER_STEPS + 1)


def test_without_steps_before_it_there_is_nothing_to_compare() -> None:
    directory = create(Plan(model="mlp"))
    for changes in ({"xla": "on"}, {"clip_norm": 1.0}):
        cure = replace(cure_of(directory, **changes), step=0)
        assert "too few steps before it" in settle_cure(cure, launch=pytest.fail).text
