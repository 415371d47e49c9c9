"""``accel-tui train --on PLACE``, with a place that takes all runs."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest

from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError
from accel_engine.events import Outcome, RunEnded
from accel_engine.places import FORMS, TAKES, PlaceRequest, placed_runs
from accel_engine.places.own_process import is_to_start_again
from accel_engine.places.place import JobState, Place, PlacedJob, machine_devices
from accel_engine.plan import Plan
from accel_engine.run import RunReader, Status, list_runs
from accel_tui.cli import follow_run, place_run
from tui.cli.conftest import Engine


class Lab(Place):
    """Starts an engine that trains the whole plan."""

    states: ClassVar[list[JobState]] = []
    jobs: ClassVar[list[PlacedJob]] = []
    cancelled: ClassVar[list[str]] = []
    commands: ClassVar[list[tuple[Plan, Sequence[str]]]] = []

    def machine(self, request: PlaceRequest) -> tuple[Device, ...]:
        return machine_devices(2 if request.gpus is None else request.gpus)

    def files(self, job: PlacedJob) -> Mapping[str, str]:
        return {"job.sh": f"{job.gpus} GPUs\n"}

    def submit(self, job: PlacedJob) -> str:
        self.jobs.append(job)
        return "7"

    def state(self, job: str) -> JobState:
        if self.states and not self.states[0].waits:
            found = self.states.pop(0)
            Engine(self.jobs[-1].directory).train()
            return found
        return self.states.pop(0) if self.states else JobState(runs=True)

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)

    def run(self, job: PlacedJob, words: Sequence[str], should_stop: Callable[[], bool]) -> int:
        self.commands.append((Plan.from_mapping(json.loads(Path(words[1]).read_text())), words))
        return 3


@pytest.fixture(autouse=True)
def _lab(monkeypatch: pytest.MonkeyPatch, engines: object) -> None:
    Lab.states, Lab.jobs, Lab.cancelled, Lab.commands = [], [], [], []
    monkeypatch.setitem(placed_runs._PLACES, "lab", Lab)
    monkeypatch.setitem(TAKES, "lab", TAKES["slurm"])
    monkeypatch.setitem(FORMS, "lab", "lab[:ROOM]")
    monkeypatch.setattr(placed_runs, "ASK_SECONDS", -1.0)


def test_a_run_at_a_place_is_shown_as_if_it_were_here(run_command) -> None:
    Lab.states = [JobState(waits=True, reason="room 3 is full"), JobState(runs=True, reason="in room 4")]

    done = run_command("train --on lab:3 --data digits --model mlp --epochs 2 --strategy mirrored --plain")

    assert done.status == 0
    assert "waits: room 3 is full" in done.err
    assert "finished" in done.out
    (run,) = list_runs()
    assert (run.directory / "job.sh").read_text() == "2 GPUs\n"


def test_detached_it_prints_the_run(run_command) -> None:
    done = run_command("train --on lab --data digits --model mlp --detach")

    (run,) = list_runs()
    assert (done.status, done.out.strip()) == (0, run.id)
    assert run.info is not None
    assert run.info.status is Status.QUEUED
    assert run.info.place is not None
    assert (run.info.place.place, run.info.place.job) == ("lab", "7")


def test_stop_takes_it_from_its_place(run_command) -> None:
    run_command("train --on lab --data digits --model mlp --detach")

    assert run_command("stop last").status == 0
    assert Lab.cancelled == ["7"]
    (run,) = list_runs()
    assert run.info is not None
    assert run.info.status is Status.STOPPED


def test_what_trains_it_again_does_so_there(run_command) -> None:
    run_command("train --on lab:3 --data digits --model mlp --gpus 1 --detach")
    (run,) = list_runs()
    assert run.info is not None
    assert follow_run._continue_message(run.info).endswith("accel-tui train --model mlp --on lab:3 --gpus 1")


def test_a_race_runs_on_a_machine_of_the_place(run_command, here) -> None:
    done = run_command("race --on lab --gpus 1 --data digits --model mlp --vary xla --seconds 2 --json")

    assert done.status == 3
    ((plan, words),) = Lab.commands
    assert (plan.model, words[0], words[2:]) == ("mlp", "race", ["--seconds", "2", "--vary", "xla", "--json"])
    assert not Path(words[1]).exists()
    assert "leave out --nodes" in run_command("race --on lab --nodes 2").err
    assert "--gpus: give a place with --on" in run_command("race --gpus 1").err


class FarLab(Lab):
    """Makes runs on a disk that is not here; the log of a job is there once its pod runs."""

    asked: ClassVar[list[bool]] = []

    def has_run_here(self, request: PlaceRequest) -> bool:
        return False

    def state(self, job: str) -> JobState:
        if (found := self.states.pop(0)) is None:
            raise RunError("the lab does not answer")
        return found

    def log_command(self, job: str, since: float | None = None) -> list[str]:
        tries = (
            "echo No resources found >&2",
            "echo waiting to start: ContainerCreating >&2; exit 1",
            "echo epoch 1 >>log; echo the connection was lost >&2; exit 1",
            "echo epoch 2 >>log",
        )
        self.asked.append(since is not None)
        return ["sh", "-c", tries[len(self.asked) - 1]]


@pytest.mark.parametrize("is_complete", [True, False])
def test_the_log_of_a_run_elsewhere_is_awaited_and_its_end_is_the_jobs(
    is_complete: bool, run_command, here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(placed_runs._PLACES, "lab", FarLab)
    monkeypatch.setattr(place_run, "_LOG_SECONDS", 0.0)
    FarLab.asked = []
    waits, runs = JobState(waits=True, reason="it waits for Kueue"), JobState(runs=True, reason="it starts its pods")
    Lab.states = [waits, None, runs, runs, JobState(reason="it has ended", is_complete=is_complete)]

    done = run_command("train --on lab --data digits --model mlp")

    assert done.status == int(not is_complete)
    told = [line.removeprefix("accel-tui: ") for line in done.err.splitlines()[-4:]]
    assert told == ["it waits for Kueue", "it starts its pods", "the connection was lost", "it has ended"]
    assert (here / "log").read_text() == "epoch 1\nepoch 2\n"
    assert FarLab.asked == [False, False, False, True]


def test_only_its_files_are_written(run_command, here) -> None:
    done = run_command("train --on lab --data digits --model mlp --write files --gpus 1")

    assert (done.status, done.lines) == (0, ["files/job.sh", "files/plan.json"])
    assert Path("files/job.sh").read_text() == "1 GPUs\n"
    assert list_runs() == []
    assert Lab.jobs == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--on labs", "there is no place 'labs'; did you mean lab?"),
        ("--nodes 2", "--nodes: give a place with --on"),
        ("--place-option --account=x --host-memory 3G", "--host-memory, --place-option: give a place with --on"),
        ("--on lab --queue", "--queue is the queue of this machine: lab has its own"),
        ("--on lab --hosts a,b", "--on and --hosts exclude each other"),
        ("--on lab --host-memory much", "'much' is not a size: give one such as 16G"),
        ("--on lab --walltime 2", "needs a unit: 2s, 2m or 2h"),
        ("--on lab --volume UP", "'UP' is not a name in Kubernetes"),
        ("--on lab --tpu-topology v5", "'v5' is not a TPU of GKE"),
        ("--on lab --devices gpu:5", "no device gpu:5; available: cpu:0, gpu:0, gpu:1"),
        ("--on lab --nodes 2", "trains on one machine: 2 machines (--nodes) take --strategy multi-worker"),
        ("--on lab --write . --resume x", "--write writes the files of a new run: give a plan"),
    ],
)
def test_wrong_words_end_with_status_2(run_command, words: str, told: str) -> None:
    done = run_command(f"train --data digits --model mlp {words}")
    assert (done.status, done.out) == (2, "")
    assert told in done.err
    assert list_runs() == []


def test_a_run_that_its_place_starts_again_is_followed_on(run_command, monkeypatch) -> None:
    again: list[bool] = []

    def is_waiting(directory: Path) -> bool:
        again.append(True)
        return is_to_start_again(directory)

    monkeypatch.setattr("accel_engine.places.placed_runs.is_to_start_again", is_waiting)

    class Preempted(Lab):
        def state(self, job: str) -> JobState:
            with closing(RunReader(self.jobs[-1].directory)) as reader:
                status = reader.info().status
            engine = Engine(self.jobs[-1].directory)
            if status is Status.QUEUED and not again:
                engine.begin()
                how = {"outcome": Outcome.STOPPED, "reason": "SIGTERM", "temporary": True}
                engine.say(RunEnded, steps=0, epochs=0, seconds=1.0, **how)
                engine.close()
            elif status is Status.QUEUED:
                engine.train()
            return JobState(waits=True, reason="requeued")

    monkeypatch.setitem(placed_runs._PLACES, "lab", Preempted)

    done = run_command("train --on lab --data digits --model mlp --epochs 2 --plain")

    assert again == [True]
    assert done.status == 0
    assert "finished" in done.out
