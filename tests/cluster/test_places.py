"""Runs at real places: Slurm, machines over SSH, and Ray, each on two hosts."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from accel_engine.events import Recovered, RunEnded, WorkersMet
from accel_engine.run import RunReader, Status, list_runs
from accel_engine.run.directory.run_paths import latest_checkpoint
from accel_engine.search.study_reader import StudyReader
from cluster.conftest import SCRIPT, SECONDS, Placed, program, start
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
    worker = run.directory / "workers" / "1"
    run.wait_for("checkpoint of the worker", lambda _: latest_checkpoint(worker) > 0)
    steps = latest_checkpoint(run.directory)

    os.kill(pid_of(worker), signal.SIGKILL)

    run.wait_for("restart", lambda run: any(isinstance(event, Recovered) for event in run.events))
    run.wait_for("new steps", lambda run: run.steps > steps and is_training(run))
    assert program("stop", run.directory.name).returncode == 0
    run.wait_for("end", has_ended)


def test_a_host_that_does_not_answer_is_named(ssh) -> None:
    done = program("train", "--hosts", "n0,nowhere.invalid", *TWO, "--data", "digits")
    assert done.returncode == 1
    assert "nowhere.invalid cannot be asked over SSH" in done.stderr


def search(*words: str, at: str = "") -> "subprocess.CompletedProcess[str]":
    """Search with two trials, which both fit the cluster, in the background."""
    ranges = ("--over", "learning_rate=1e-3..1e-1:log", "--confirm", "0", "--pruner", "off")
    return program("search", "--data", "digits", "--model", "mlp", *ranges, "--name", "s", *words, at=at)


def trials(count: int) -> list[Placed]:
    """The runs of a search, once there are so many."""
    wait_until(lambda: len(list_runs()) >= count, f"{count} trials", timeout=SECONDS)
    return [Placed(run.directory) for run in list_runs()]


def test_slurm_trains_the_trials_of_a_search(cluster) -> None:
    done = search("--on", "slurm:main", "--trials", "3", "--epochs", "2", "--json")

    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout.splitlines()[-1])
    assert (ended["outcome"], ended["states"]) == ("finished", {"finished": 3})
    assert all(run.info.place is not None and run.info.place.place == "slurm:main" for run in trials(3))


def test_trials_are_tasks_of_an_array_that_are_cancelled_and_start_again_by_themselves(cluster) -> None:
    done = search("--on", "slurm:main", "--trials", "4", "--at-once", "2", "--sampler", "random", *LONG, "--detach")
    assert done.returncode == 0, done.stderr
    runs = trials(4)  # two of them wait
    wait_until(lambda: all(run.info.place for run in runs), "an array", timeout=SECONDS)
    assert len({run.job.partition("_")[0] for run in runs}) == 1
    directory = Path(os.environ["ACCEL_TUI_HOME"], "studies", "s")
    first, second, third, last = sorted(runs, key=lambda run: run.job)
    with StudyReader(directory) as study:

        def states() -> list[str]:
            study.refresh()
            return [f"{trial.state.value}: {trial.reason}" for trial in study.trials.values()]

        for run in (first, second):
            run.wait_for("checkpoint", is_training)
        slurm("scancel", last.job)
        wait_until(lambda: any("no longer in its array: cancelled" in each for each in states()), "a cancelled trial")
        slurm("scancel", first.job)
        wait_until(
            lambda: f"stopped: job {first.job} of Slurm was cancelled (scancel)" in states(), "an end", timeout=SECONDS
        )
        third.wait_for("checkpoint", is_training)

        slurm("sbatch", "--partition=urgent", "--nodes=2", "--output=/dev/null", "--wrap=sleep 3")

        for run in (second, third):
            run.wait_for("preemption", lambda run: state_of(run.job) == "PENDING")
            steps = latest_checkpoint(run.directory)
            slurm("scontrol", "update", f"JobId={run.job}", "StartTime=now")
            run.wait_for("new steps", lambda run, steps=steps: run.steps > steps and is_training(run))
        assert program("stop", "s").returncode == 0
        wait_until(lambda: study.database.part.ended is not None, "the end of the search", timeout=SECONDS)
        assert all(state.startswith("stopped") for state in states()), states()
    wait_until(lambda: not slurm("squeue", "--noheader"), "the end of all jobs", timeout=SECONDS)


def test_a_trial_waits_in_slurm_with_its_reason_is_continued_when_lost_and_stopped_with_the_search(cluster) -> None:
    done = search("--on", "slurm:main", "--trials", "3", "--at-once", "3", *LONG, "--detach")
    assert done.returncode == 0, done.stderr
    trials(3)
    directory = Path(os.environ["ACCEL_TUI_HOME"], "studies", "s")
    with StudyReader(directory) as study:

        def states() -> list[str]:
            study.refresh()
            return [f"{trial.state.value}: {trial.reason}" for trial in study.trials.values()]

        wait_until(lambda: any("of Slurm waits" in state for state in states()), "a reason", timeout=SECONDS)
        wait_until(lambda: any(is_training(run) for run in trials(3)), "a checkpoint", timeout=SECONDS)
        lost = next(run for run in trials(3) if is_training(run))
        steps, job = latest_checkpoint(lost.directory), lost.job

        os.kill(pid_of(lost.directory), signal.SIGKILL)

        lost.wait_for("another job", lambda run: (place := run.info.place) is not None and place.job != job)
        for other in trials(3):  # so that it gets a node
            if other.directory != lost.directory and is_training(other):
                assert program("stop", other.directory.name).returncode == 0
        lost.wait_for("new steps", lambda run: run.steps > steps and is_training(run))
        assert program("stop", "s").returncode == 0
        wait_until(lambda: study.database.part.ended is not None, "the end of the search", timeout=SECONDS)
        assert all(state.startswith("stopped") for state in states()), states()
    wait_until(lambda: not slurm("squeue", "--noheader"), "the end of all jobs", timeout=SECONDS)


def crash(host: str) -> None:
    """Kill all processes of a host, which vanish without a word."""
    for pid in subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True).stdout.split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def check_that_a_search_outlives_a_node(first: Placed, second: Placed) -> None:
    """Let the run of a trial lose its node, n1: it waits for a free one, and goes on from its checkpoint there."""
    for run in (first, second):
        run.wait_for("checkpoint", is_training)
    lost = next(run for run in (first, second) if host_of_process(pid_of(run.directory)) == "n1")
    other, steps, job = second if lost is first else first, latest_checkpoint(lost.directory), lost.info.place

    crash("n1")

    lost.wait_for("another job", lambda run: (place := run.info.place) is not None and place != job)
    before = other.steps
    other.wait_for("new steps of the other trial", lambda run: run.steps > before and is_training(run))
    assert lost.info.status is Status.QUEUED
    assert program("stop", other.directory.name).returncode == 0
    lost.wait_for("new steps", lambda run: run.steps > steps and is_training(run))
    assert host_of_process(pid_of(lost.directory)) == "n0"


def host_of_process(pid: int) -> str:
    """The host whose network a process has."""
    own = os.stat(f"/proc/{pid}/ns/net").st_ino
    return next(host for host in ("n0", "n1") if os.stat(f"/run/netns/{host}").st_ino == own)


def stopped_search(at: str = "") -> None:
    """Stop a search, and wait until it has ended: nothing hangs on the node that is gone."""
    assert program("stop", "s", at=at).returncode == 0
    with StudyReader(Path(os.environ["ACCEL_TUI_HOME"], "studies", "s")) as study:

        def has_ended() -> bool:
            study.refresh()
            return study.database.part.ended is not None

        wait_until(has_ended, "the end of the search", timeout=SECONDS)
        assert all(trial.state.value == "stopped" for trial in study.trials.values())


def test_a_search_goes_on_when_slurm_loses_a_node(cluster) -> None:
    try:
        done = search("--on", "slurm:main", "--trials", "2", "--at-once", "2", *LONG, "--detach")
        assert done.returncode == 0, done.stderr
        first, second = trials(2)
        check_that_a_search_outlives_a_node(first, second)
        stopped_search()
        wait_until(lambda: not slurm("squeue", "--noheader"), "the end of all jobs", timeout=SECONDS)
    finally:
        subprocess.run(["bash", str(SCRIPT), "up"], capture_output=True, check=True)


def test_a_race_runs_on_a_node_of_slurm(cluster) -> None:
    done = program(
        "race", "--on", "slurm:main", "--data", "digits", "--model", "mlp", "--vary", "xla", "--seconds", "0.5"
    )

    assert done.returncode == 0, done.stderr
    assert "CONFIGURATION" in done.stdout


def test_a_race_over_ssh_ends_with_ctrl_c(ssh) -> None:
    command = [sys.executable, "-m", "accel_tui", "race", "--on", "hosts:n0", "--data", "digits", "--model", "mlp"]
    with subprocess.Popen([*command, "--seconds", "600"], stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stderr
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, err
    assert b"Not measured" in out


def ray_node(command: Sequence[str], log: Path) -> "subprocess.Popen[bytes]":
    """Start a node of Ray; again where a busy machine takes longer than the 30 s that Ray gives itself."""
    for _ in range(5):
        with log.open("w") as stream:
            process = subprocess.Popen(command, stdout=stream, stderr=stream)

        def has_begun() -> bool:
            return "Ray runtime started" in log.read_text()

        wait_until(lambda process=process: has_begun() or process.poll() is not None, "Ray", timeout=SECONDS)
        if has_begun():
            return process
    pytest.fail(log.read_text())


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
            started.append(ray_node(at, temporary / f"{host}.log"))
        yield
    finally:
        for each in reversed(started):
            each.terminate()
            each.wait(SECONDS)


def test_ray_trains_on_two_nodes(ray) -> None:
    run = start("--on", "ray", "--nodes", "2", *TWO, "--epochs", "2", at="n0")
    run.wait_for("end", has_ended)
    assert run.info.status is Status.FINISHED


def test_ray_trains_the_trials_of_a_search_on_its_nodes(ray) -> None:
    done = search("--on", "ray", "--cpus", "2", "--trials", "3", "--epochs", "2", "--json", at="n0")

    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout.splitlines()[-1])
    assert (ended["outcome"], ended["states"]) == ("finished", {"finished": 3})
    assert len(trials(3)) == 3


def test_a_search_goes_on_when_ray_loses_a_node(ray) -> None:
    try:
        words = ("--on", "ray", "--cpus", "2", "--trials", "2", "--at-once", "2", *LONG, "--detach")
        done = search(*words, at="n0")
        assert done.returncode == 0, done.stderr
        first, second = trials(2)
        check_that_a_search_outlives_a_node(first, second)
        stopped_search(at="n0")
    finally:
        subprocess.run(["bash", str(SCRIPT), "up"], capture_output=True, check=True)


def test_a_race_runs_on_a_node_of_ray(ray) -> None:
    words = ("--on", "ray", "--data", "digits", "--model", "mlp", "--vary", "xla", "--seconds", "0.5")
    done = program("race", *words, at="n0")

    assert done.returncode == 0, done.stderr
    assert "CONFIGURATION" in done.stdout


def test_a_run_that_ray_has_no_room_for_waits_and_is_cancelled(ray) -> None:
    run = start("--on", "ray", "--cpus", "2", *LONG, at="n0")
    other = start("--on", "ray", "--nodes", "2", "--cpus", "2", *TWO, at="n0")
    other.wait_for("wait", lambda run: run.info.place is not None and "with 2 CPU free" in run.info.place.waits)

    assert program("stop", other.directory.name).returncode == 0

    assert other.info.status is Status.STOPPED
    run.wait_for("checkpoint", is_training)
    program("stop", run.directory.name)
    run.wait_for("end", has_ended)
