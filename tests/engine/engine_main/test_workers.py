"""Real workers on this machine that train together."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

from accel_engine import network_namespace, run
from accel_engine.events import (
    CheckpointSaved,
    LearningRateChanged,
    Outcome,
    Phase,
    PhaseChanged,
    RunStarted,
    Warned,
    WorkersMet,
)
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.run.directory.run_paths import latest_checkpoint
from accel_engine.run.engine.commands import read_answer
from accel_engine.run.runs.creation import reopen
from engine.engine_main import scheduled_model
from engine.engine_main.record import last, read
from engine.training.conftest import Gym, gym, placed  # noqa: F401 (fixtures)

ALONE = Plan(model="mlp", batch_size=64, steps_per_epoch=50, epochs=2, validation="off")
"""A hundred steps; the last one of each pass has 29 examples, of which two workers share one."""

TOGETHER = ALONE.replace(strategy="multi-worker", local_workers=2)

Wait = Callable[..., None]


def worker_of(directory: Path) -> Path:
    return directory / "workers" / "1"


def ask(directory: Path, wait_until: Wait, *command: object) -> None:
    number = run.send_command(directory, *command)
    wait_until(lambda: read_answer(directory, number), f"an answer to {command[0]}")
    assert read_answer(directory, number)[0]


def listening(engine: int, *, seen_from: int) -> int:
    """How many sockets of an engine and its workers listen, in the network of a process."""
    processes = [psutil.Process(engine), *psutil.Process(engine).children(recursive=True)]
    owned = {link for each in processes for link in open_files(each.pid)}
    tables = (Path(f"/proc/{seen_from}/net/{name}") for name in ("tcp", "tcp6"))
    rows = [row.split() for table in tables if table.exists() for row in table.read_text().splitlines()[1:]]
    return sum(row[3] == "0A" and f"socket:[{row[9]}]" in owned for row in rows)


def open_files(process: int) -> list[str]:
    found = []
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):  # closed since
            found.append(os.readlink(descriptor))
    return found


def test_two_workers_train_like_one_process_and_record_its_schedule(
    engines: list["subprocess.Popen[str]"],
    home: Path,
    gym: Gym,  # noqa: F811 (the fixture)
) -> None:
    model, metrics = f"{scheduled_model.__file__}:without_dropout", ("recall", "auc")
    changes = {"model": model, "gradient_norm": "on", "metrics": metrics}
    alone = gym.train(ALONE.replace(**changes)).directory
    together = run.create(TOGETHER.replace(**changes))
    engines.append(start_engine(together))
    assert engines[-1].wait(600) == 0

    losses = read(together)[1]
    assert len(losses) == 100
    np.testing.assert_allclose(losses, read(alone)[1], atol=1e-4)
    np.testing.assert_allclose(read(together, "learning_rate")[1], scheduled_model.rates(100), rtol=1e-5)
    np.testing.assert_allclose(read(together, "gradient_norm")[1], read(alone, "gradient_norm")[1], rtol=1e-2)
    assert last(alone).metrics.keys() >= {*metrics}
    for name, value in last(alone).metrics.items():  # of the last epoch
        assert last(together).metrics[name] == pytest.approx(value, rel=1e-2, abs=1e-4), name
    worker = worker_of(together)
    np.testing.assert_array_equal(read(worker)[1], losses)
    with closing(run.RunReader(worker)) as reader:
        assert reader.poll().samples
    assert (last(together).outcome, last(worker).outcome) == (Outcome.FINISHED, Outcome.FINISHED)
    assert (together / "model.keras").is_file()
    assert not (worker / "model.keras").exists()


def test_commands_reach_all_workers_at_the_same_step_and_the_run_continues_until_one_is_lost(
    engines: list["subprocess.Popen[str]"], home: Path, wait_until: Wait
) -> None:
    directory = run.create(TOGETHER.replace(epochs=100_000))
    engines.append(start_engine(directory))
    wait_until(lambda: run.list_runs()[0].steps > 50, "training")
    if not network_namespace.why_not():
        # TensorFlow's servers listen on all interfaces, except in a separate network.
        assert listening(engines[0].pid, seen_from=engines[0].pid) >= 2
        assert listening(engines[0].pid, seen_from=os.getpid()) == 0
    worker = worker_of(directory)
    ask(directory, wait_until, "learning_rate", 0.5)
    ask(directory, wait_until, "pause")
    wait_until(lambda: run.list_runs()[0].status is not None, "a status")
    ask(worker, wait_until, "resume")  # whoever is asked, all of them obey
    ask(directory, wait_until, "stop")
    assert engines[0].wait(600) == 0
    changed = [
        [event for event in read(one)[0] if isinstance(event, LearningRateChanged)][-1] for one in (directory, worker)
    ]
    assert changed[0].learning_rate == changed[1].learning_rate == 0.5
    assert changed[0].step == changed[1].step
    for one in (directory, worker):
        before, after = np.split(read(one, "learning_rate")[1], [changed[0].step])
        assert set(before) == {np.float32(0.001)}
        assert set(after) == {np.float32(0.5)}
    assert last(directory).outcome is Outcome.STOPPED
    steps = last(directory).steps
    assert steps == last(worker).steps == latest_checkpoint(directory) == latest_checkpoint(worker)

    # A worker that has lost its last checkpoint takes all of them back to the one before.
    reopen(directory, TOGETHER.replace(epochs=100_000, isolate_workers="off"))
    for file in (worker / "checkpoints").glob(f"step-{steps}.*"):
        file.unlink()
    engines.append(start_engine(directory))
    wait_until(lambda: run.list_runs()[0].steps > steps, "training")
    starts = [
        [event.first_step for event in read(one)[0] if isinstance(event, RunStarted)] for one in (directory, worker)
    ]
    assert starts[0] == [0, steps, starts[1][1]]
    assert 0 < starts[1][1] < steps
    warned = [event.message for event in read(directory)[0] if isinstance(event, Warned)]
    assert ["can run code as you" in each for each in warned].count(True) == 1 + bool(network_namespace.why_not())

    # One that is lost is named, and the run fails.
    (process,) = psutil.Process(engines[1].pid).children()
    process.kill()
    assert engines[1].wait(600) == 1
    ended = last(directory)
    assert ended.outcome is Outcome.FAILED
    assert ended.reason.startswith("worker 1 (127.0.0.1:")
    assert "was lost" in ended.reason
    assert "continue" in ended.hint
    assert len(read(directory)[1]) == ended.steps >= latest_checkpoint(directory) > 0


@pytest.mark.campaign
def test_a_worker_without_its_checkpoints_fails_the_run_which_loses_nothing(
    engines: list["subprocess.Popen[str]"], home: Path
) -> None:
    directory = run.create(TOGETHER)
    engines.append(start_engine(directory))
    assert engines[0].wait(600) == 0
    saved = latest_checkpoint(directory)
    assert last(directory).outcome is Outcome.FINISHED
    reopen(directory, TOGETHER.replace(epochs=3))
    shutil.rmtree(worker_of(directory) / "checkpoints")
    engines.append(start_engine(directory))
    assert engines[1].wait(600) == 1
    assert last(directory).reason.startswith(
        f"worker 1 has no checkpoint of this run, but worker 0 has one of step {saved:,}"
    )
    assert latest_checkpoint(directory) == saved
    assert len(read(directory)[1]) == saved


@pytest.mark.campaign  # training/distributed/test_worker_sync.py has the decision
def test_a_worker_that_was_lost_before_its_first_checkpoint_takes_all_back_to_the_beginning(
    engines: list["subprocess.Popen[str]"], home: Path
) -> None:
    directory = run.create(TOGETHER)
    engines.append(start_engine(directory))
    assert engines[0].wait(600) == 0
    saved, worker = latest_checkpoint(directory), worker_of(directory)
    reopen(directory, TOGETHER.replace(epochs=3))
    shutil.rmtree(worker / "checkpoints")
    with sqlite3.connect(worker / "run.db") as database:
        database.execute("DELETE FROM event WHERE kind = ?", (CheckpointSaved.kind(),))
    database.close()
    engines.append(start_engine(directory))
    assert engines[1].wait(600) == 0
    for one in (directory, worker):
        assert [event.first_step for event in read(one)[0] if isinstance(event, RunStarted)][-1] == 0
        assert (latest_checkpoint(one), last(one).steps) == (150, 150)
    warned = [event.message for event in read(directory)[0] if isinstance(event, Warned)]
    assert (
        "another worker was lost before its first checkpoint: training begins anew; "
        f"steps 1 to {saved} are repeated" in warned
    )


@pytest.mark.campaign  # strategies/test_cluster_spec.py finds what SLURM says; workers that meet train alike
def test_the_tasks_of_a_slurm_step_train_together(engines: list["subprocess.Popen[str]"], home: Path) -> None:
    plan = ALONE.replace(strategy="multi-worker", steps_per_epoch=5)
    step = {"SLURM_NTASKS": "2", "SLURM_STEP_NODELIST": "127.0.0.1", "SLURM_STEP_TASKS_PER_NODE": "2"}
    step |= {"SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "0"}  # which the ports follow from
    directories = [run.create(plan) for _ in range(2)]
    for task, directory in enumerate(directories):
        engines.append(start_engine(directory, step | {"SLURM_PROCID": str(task)}))
    assert [engine.wait(600) for engine in engines] == [0, 0]

    np.testing.assert_array_equal(*(read(directory)[1] for directory in directories))
    (met,) = (event for event in read(directories[0])[0] if isinstance(event, WorkersMet))
    assert [worker.run for worker in met.workers] == [directory.name for directory in directories]


def test_a_worker_that_never_starts_is_named(
    engines: list["subprocess.Popen[str]"], home: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCEL_TUI_JOIN_SECONDS", "3")
    directory = run.create(ALONE.replace(strategy="multi-worker"))
    config = '{"cluster": {"worker": ["%s", "127.0.0.1:1"]}, "task": {"type": "worker", "index": 0}}'
    engines.append(start_engine(directory, {"TF_CONFIG": config % address}))
    assert engines[0].wait(600) == 1
    assert last(directory).reason == "worker 1 (127.0.0.1:1) did not start within 3 s"
    waited = [event.detail for event in read(directory)[0] if isinstance(event, PhaseChanged)]
    assert "waiting for worker 1 (127.0.0.1:1)" in waited
    assert Phase.TRAINING not in [event.phase for event in read(directory)[0] if isinstance(event, PhaseChanged)]
