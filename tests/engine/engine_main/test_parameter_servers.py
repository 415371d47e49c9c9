"""Real coordinators, workers and parameter servers on this machine."""

import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import psutil
import pytest

from accel_engine import run
from accel_engine.events import (
    CommandAnswered,
    DevicesFound,
    Event,
    LearningRateChanged,
    Outcome,
    PhaseChanged,
    RunStarted,
    Warned,
)
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.run.directory.run_paths import latest_checkpoint
from accel_engine.run.engine.commands import read_answer
from accel_engine.run.runs.creation import reopen
from accel_engine.run.runs.worker_runs import worker_runs_of
from engine.engine_main import scheduled_model
from engine.engine_main.record import events, last, read
from engine.training.conftest import Gym, gym, placed  # noqa: F401 (fixtures)

ALONE = Plan(model=f"{scheduled_model.__file__}:build", batch_size=16, steps_per_epoch=50, epochs=2)
"""A hundred steps of a model with batch normalization, dropout and a schedule."""

SERVED = ALONE.replace(strategy="parameter-server", local_workers=1)

Wait = Callable[..., None]


def said(directory: Path, kind: type[Event]) -> list[Event]:
    return [event for event in events(directory) if isinstance(event, kind)]


def kill(directory: Path, name: str) -> None:
    with closing(run.RunReader(worker_runs_of(directory)[name])) as reader:
        psutil.Process(reader.info().pid).kill()


def test_one_worker_trains_like_one_process_and_records_its_schedule(
    engines: list["subprocess.Popen[str]"],
    home: Path,
    gym: Gym,  # noqa: F811 (the fixture)
) -> None:
    changes = {"gradient_norm": "on", "metrics": ("recall", "auc")}
    alone = gym.train(ALONE.replace(**changes)).directory
    served = run.create(SERVED.replace(**changes))
    engines.append(start_engine(served))
    assert engines[-1].wait(600) == 0, last(served)

    losses = read(served)[1]
    assert len(losses) == 100
    np.testing.assert_allclose(losses, read(alone)[1], atol=1e-4)
    np.testing.assert_allclose(read(served, "learning_rate")[1], scheduled_model.rates(100), rtol=1e-5)
    np.testing.assert_allclose(read(served, "gradient_norm")[1], read(alone, "gradient_norm")[1], rtol=1e-2)
    assert last(alone).metrics.keys() >= {"recall", "auc"}
    for name, value in last(alone).metrics.items():
        assert last(served).metrics[name] == pytest.approx(value, abs=1e-3), name
    assert (served / "model.keras").is_file()
    (found,) = said(served, DevicesFound)
    assert [device.name for device in found.devices] == ["worker 0 CPU:0"]
    assert list(worker_runs_of(served)) == ["worker 0", "parameter server 0"]
    for part in worker_runs_of(served).values():
        assert last(part).outcome is Outcome.FINISHED
        assert [event.detail for event in said(part, PhaseChanged)][-1].endswith("for the coordinator")
        assert latest_checkpoint(part) == 0
        with closing(run.RunReader(part)) as reader:
            assert reader.poll().samples


@pytest.mark.campaign
def test_a_coordinator_survives_the_loss_of_a_worker_but_not_of_a_server(
    engines: list["subprocess.Popen[str]"], home: Path, wait_until: Wait
) -> None:
    plan = SERVED.replace(model="cnn", local_workers=2, epochs=100_000, validation="off")
    directory = run.create(plan)
    engines.append(start_engine(directory))
    wait_until(lambda: run.list_runs()[0].steps > 50, "training")

    for asked, obeyed in ((worker_runs_of(directory)["worker 0"], False), (directory, True)):
        number = run.send_command(asked, "learning_rate", 0.01)
        wait_until(lambda at=asked, number=number: read_answer(at, number), "an answer")
        # Which is said of a moment after it is given.
        wait_until(lambda at=asked: said(at, CommandAnswered), "a word of it")
        assert [event.obeyed for event in said(asked, CommandAnswered)] == [obeyed]
    assert said(directory, LearningRateChanged)[-1].learning_rate == pytest.approx(0.01)

    kill(directory, "worker 0")
    wait_until(lambda: [event for event in said(directory, Warned) if "was lost" in event.message], "a warning")
    assert said(directory, Warned)[-1].message.endswith("training continues with worker 1")
    reached = run.list_runs()[0].steps
    wait_until(lambda: run.list_runs()[0].steps > reached + 50, "the other worker to go on")

    kill(directory, "parameter server 0")
    assert engines[0].wait(600) == 1
    assert last(directory).reason.startswith("parameter server 0 (127.0.0.1:")
    assert "was lost" in last(directory).reason
    saved = latest_checkpoint(directory)
    assert saved

    reopen(directory, plan.replace(local_workers=1))
    engines.append(start_engine(directory))
    wait_until(lambda: said(directory, RunStarted)[-1].first_step == saved, "being taken up")
    wait_until(lambda: run.list_runs()[0].steps > saved + 50, "going on")
    servers = psutil.Process(engines[1].pid).children()
    engines[1].kill()  # without a word to those that serve it
    psutil.wait_procs(servers, 30)
    for name in ("worker 0", "parameter server 0"):
        ended = last(worker_runs_of(directory)[name])
        assert ended.outcome is Outcome.FINISHED
        assert ended.reason.startswith("training has ended, or coordinator")


@pytest.mark.campaign
def test_the_time_limit_ends_a_run_within_an_epoch(engines: list["subprocess.Popen[str]"], home: Path) -> None:
    plan = SERVED.replace(model="linear", steps_per_epoch=1_000_000, time_limit="2s", validation="off")
    directory = run.create(plan)
    engines.append(start_engine(directory))
    assert engines[-1].wait(180) == 0

    ended = last(directory)
    assert (ended.outcome, ended.reason) == (Outcome.STOPPED, "the time limit of 2s is reached")
    assert 0 < ended.steps == latest_checkpoint(directory) < 1_000_000
