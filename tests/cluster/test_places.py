"""Runs at real places: Slurm, machines over SSH, and Ray, each on two hosts."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.events import Recovered, RunEnded, WorkersMet
from accel_engine.run import RunReader, Status
from accel_engine.run.directory.run_paths import latest_checkpoint
from cluster.conftest import SECONDS, Placed, program, start
from waiting import wait_until

TWO = ("--strategy", "multi-worker")

LONG = ("--epochs", "100000", "--checkpoint-every", "5 epochs")
"""Trains until something ends it."""


def slurm(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def state_of(job: str) -> str:
    done = subprocess.run(
        ["squeue", "--noheader", f"--jobs={job}", "--format=%T"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def has_ended(run: Placed) -> bool:
    return not run.info.status.live


def is_training(run: Placed) -> bool:
    return run.info.status is Status.RUNNING and latest_checkpoint(run.directory) > 0


def ended(run: Placed) -> RunEnded:
    return next(event for event in reversed(run.events) if isinstance(event, RunEnded))


def pid_of(directory: Path) -> int:
    with closing(RunReader(directory, steps=False)) as reader:
        pid = reader.info().pid
    assert pid is not None
    return pid


def test_slurm_trains_a_run_that_is_shown_as_if_it_were_here(cluster) -> None:
    done = program("train", "--on", "slurm", "--data", "digits", "--model", "mlp", "--epochs", "2", "--plain")

    assert done.returncode == 0, done.stderr
    assert "finished at step 46" in done.stdout


def test_slurm_trains_on_two_nodes(cluster) -> None:
    run = start("--on", "slurm:main", "--nodes", "2", *TWO, "--epochs", "2")
    run.wait_for("end", has_ended)

    assert run.info.status is Status.FINISHED
    met = next(event for event in run.events if isinstance(event, WorkersMet))
    assert len(met.workers) == 2
    assert (run.directory / "workers" / "1" / "run.db").is_file()


def test_a_held_job_says_so_and_is_cancelled(cluster) -> None:
    run = start("--on", "slurm", "--place-option", "--hold", "--place-option", "--comment=my lab's 'best'")
    assert state_of(run.job) == "PENDING"

    assert program("stop", run.directory.name).returncode == 0

    assert run.info.status is Status.STOPPED
    assert state_of(run.job) == ""


def test_stop_ends_the_job(cluster) -> None:
    run = start("--on", "slurm", *LONG)
    run.wait_for("checkpoint", is_training)

    assert program("stop", run.directory.name).returncode == 0

    run.wait_for("end of the job", lambda run: state_of(run.job) == "")
    assert run.info.status is Status.STOPPED


@pytest.mark.parametrize("nodes", [1, 2])
def test_after_preemption_the_run_goes_on_from_its_checkpoint(cluster, nodes: int) -> None:
    run = start("--on", "slurm:main", *LONG, *(("--nodes", "2", *TWO) if nodes > 1 else ()))
    run.wait_for("checkpoint", is_training)
    urgent = slurm("sbatch", "--parsable", "--partition=urgent", "--nodes=2", "--output=/dev/null", "--wrap=sleep 3")

    run.wait_for("preemption", lambda run: state_of(run.job) == "PENDING")
    steps = latest_checkpoint(run.directory)
    assert steps == run.steps  # the engine has stopped with a checkpoint
    assert run.info.status is Status.QUEUED
    slurm("scontrol", "update", f"JobId={run.job}", "StartTime=now")
    run.wait_for("restart", lambda run: any(isinstance(event, Recovered) for event in run.events))
    run.wait_for("new steps", lambda run: run.steps > steps and is_training(run))
    program("stop", run.directory.name)
    run.wait_for("end of the job", lambda run: state_of(run.job) == "")
    assert state_of(urgent) == ""


def test_a_job_that_is_cancelled_is_not_started_again(cluster) -> None:
    run = start("--on", "slurm", *LONG)
    run.wait_for("checkpoint", is_training)

    slurm("scancel", run.job)

    run.wait_for("end of the job", lambda run: state_of(run.job) == "")
    assert run.info.status is Status.STOPPED


def test_a_written_job_trains_when_it_is_submitted(cluster, tmp_path) -> None:
    folder = tmp_path / "job"
    done = program(
        "train", "--on", "slurm", "--data", "digits", "--model", "mlp", "--epochs", "2", "--write", str(folder)
    )
    assert done.returncode == 0, done.stderr

    job = slurm("sbatch", "--parsable", str(folder / "job.sh"))

    run = Placed(folder / "run")
    wait_until((folder / "run" / "run.db").is_file, "the run", timeout=SECONDS)
    run.wait_for("end", has_ended)
    assert run.info.status is Status.FINISHED
    assert run.job == job


def test_hosts_train_together_and_end_together(ssh) -> None:
    run = start("--hosts", "n0,n1", *TWO, *LONG)
    run.wait_for("checkpoint", is_training)
    worker = run.directory / "workers" / "1"

    os.kill(pid_of(worker), signal.SIGKILL)

    run.wait_for("end", has_ended)
    assert run.info.status is Status.FAILED
    assert "worker 1 (n1:" in ended(run).reason


def test_hosts_start_again_with_keep_alive(ssh) -> None:
    run = start("--hosts", "n0,n1", *TWO, *LONG, "--keep-alive", "on")
    run.wait_for("checkpoint", is_training)
    steps = latest_checkpoint(run.directory)

    os.kill(pid_of(run.directory / "workers" / "1"), signal.SIGKILL)

    run.wait_for("restart", lambda run: any(isinstance(event, Recovered) for event in run.events))
    run.wait_for("new steps", lambda run: run.steps > steps and is_training(run))
    assert program("stop", run.directory.name).returncode == 0
    run.wait_for("end", has_ended)


def test_a_host_that_does_not_answer_is_named(ssh) -> None:
    done = program("train", "--hosts", "n0,nowhere.invalid", *TWO, "--data", "digits")
    assert done.returncode == 1
    assert "nowhere.invalid cannot be asked over SSH" in done.stderr


@pytest.fixture
def ray(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Ray cluster of the two hosts."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus=2", "--disable-usage-stats"]
    temporary = tmp_path_factory.mktemp("r")
    head = ["--head", "--node-ip-address=10.77.0.10", "--include-dashboard=false", f"--temp-dir={temporary}"]
    other = ["--address=10.77.0.10:6379", "--node-ip-address=10.77.0.11"]
    started = []
    try:
        for host, words in (("n0", head), ("n1", other)):
            at = ["nsenter", f"--net=/run/netns/{host}", *command, *words, "--block"]
            with (temporary / f"{host}.log").open("w") as log:
                started.append(subprocess.Popen(at, stdout=log, stderr=log))
            for _ in range(60):
                if "Ray runtime started" in (temporary / f"{host}.log").read_text():
                    break
                time.sleep(1)
        yield
    finally:
        for each in reversed(started):
            each.terminate()
            each.wait(60)


def test_ray_trains_on_two_nodes(ray) -> None:
    run = start("--on", "ray", "--nodes", "2", *TWO, "--epochs", "2", at="n0")
    run.wait_for("end", has_ended)
    assert run.info.status is Status.FINISHED


def test_a_run_that_ray_has_no_room_for_waits_and_is_cancelled(ray) -> None:
    run = start("--on", "ray", "--cpus", "2", *LONG, at="n0")
    other = start("--on", "ray", "--nodes", "2", "--cpus", "2", *TWO, at="n0")
    other.wait_for("wait", lambda run: run.info.place is not None and "with 2 CPU free" in run.info.place.waits)

    assert program("stop", other.directory.name).returncode == 0

    assert other.info.status is Status.STOPPED
    run.wait_for("checkpoint", is_training)
    program("stop", run.directory.name)
    run.wait_for("end", has_ended)
