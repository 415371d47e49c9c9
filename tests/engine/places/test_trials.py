"""Trials of a search that Slurm trains, by a stand-in: given, waiting, started again, lost and ended."""

import socket
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine import clock
from accel_engine.errors import DataError, UsageError
from accel_engine.events import Outcome, RunEnded
from accel_engine.places import HOST, PlaceName, PlaceRequest, placed_runs, slurm_jobs
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, Status, runs_directory
from accel_engine.search import new_study, runs_at_place
from accel_engine.search.runs_at_place import RunsAtPlace
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.study_paths import studies_directory
from engine.places.conftest import Programs
from engine.search.searching import define
from recorded_run import started

PLAN = Plan(data="digits", model="mlp", epochs=1)


@pytest.fixture(autouse=True)
def _asks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placed_runs, "ASK_SECONDS", 0.0)
    monkeypatch.setattr(slurm_jobs, "RECENT_SECONDS", -1.0)


@pytest.fixture
def runs(slurm: Programs) -> RunsAtPlace:
    return RunsAtPlace(PlaceName("slurm", "gpu"), PlaceRequest(gpus=1))


def begin(runs: RunsAtPlace, *trials: str) -> None:
    """Start trials as two steps of a search do."""
    for _ in range(2):
        for run in trials:
            runs.start(run)


def write(run: str, ended: RunEnded | None) -> None:
    """Let an engine train a run: it ends so, or is lost."""
    with closing(RunWriter(runs_directory() / run)) as writer:
        writer.begin(started())
        if ended:
            writer.end(ended)


def end(outcome: Outcome, *, temporary: bool = False) -> RunEnded:
    reason = "SIGTERM" if temporary else ""
    return RunEnded(
        time=clock.now(), outcome=outcome, steps=1, epochs=0, seconds=1.0, reason=reason, temporary=temporary
    )


def test_a_trial_is_a_job_that_waits_with_its_reason_and_is_cancelled(slurm: Programs, runs: RunsAtPlace) -> None:
    assert runs.slots() == 4 * 4  # as sinfo says: four nodes, of which most have four GPUs
    run = runs.create(PLAN, "s", 3)
    assert runs.observe(run).status is Status.QUEUED
    begin(runs, run)
    assert "--array" not in slurm.known["script"]
    assert "--gres=gpu:1" in slurm.known["script"]
    assert runs.start(run) == "job 7 of Slurm waits, jobs of higher priority come first (Priority)"
    assert [call[0] for call in slurm.known["asked"]].count("sbatch") == 1

    runs.stop(run, "not promising")

    assert runs.observe(run).status is Status.STOPPED
    assert slurm.known["jobs"]["7"]["T"] == "CANCELLED"


def test_a_trial_that_slurm_starts_again_waits(slurm: Programs, runs: RunsAtPlace) -> None:
    run = runs.create(PLAN, "s", 0)
    begin(runs, run)
    slurm.set_job("7", T="RUNNING")
    write(run, end(Outcome.STOPPED, temporary=True))
    assert runs.observe(run).status is Status.QUEUED  # the job has yet to say so
    slurm.set_job("7", T="PENDING", r="BeginTime")
    assert runs.observe(run).status is Status.QUEUED
    assert "requeued" in runs.start(run)
    slurm.set_job("7", T="CANCELLED", r="None")
    runs.start(run)
    assert runs.observe(run).status is Status.STOPPED


def test_a_lost_trial_leaves_its_job_before_another_one_continues_it(
    slurm: Programs, runs: RunsAtPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.create(PLAN, "s", 0)
    begin(runs, run)
    slurm.set_job("7", T="RUNNING")
    write(run, None)
    assert runs.observe(run).status is Status.QUEUED  # its job has yet to end
    monkeypatch.setattr(runs_at_place, "END_SECONDS", 0.0)
    lost = runs.observe(run)
    assert (lost.status, lost.reason) == (Status.LOST, f"its engine on {socket.gethostname()} was lost")

    runs.reopen(run, {})

    assert slurm.known["jobs"]["7"]["T"] == "CANCELLED"
    assert runs.observe(run).status is Status.QUEUED
    begin(runs, run)
    assert slurm.known["jobs"]["7"]["T"] == "PENDING"


@pytest.mark.parametrize("ended", [end(Outcome.STOPPED, temporary=True), None])
def test_a_trial_whose_job_is_cancelled_is_stopped_and_not_repeated(
    slurm: Programs, runs: RunsAtPlace, ended: RunEnded | None
) -> None:
    waiting, running = runs.create(PLAN, "s", 0), runs.create(PLAN, "s", 1)
    begin(runs, waiting, running)
    slurm.set_job("7_1", T="RUNNING", N="gpu01")
    write(running, ended)
    for task in ("7_0", "7_1"):
        slurm.set_job(task, T="CANCELLED", r="None")
        runs.start(waiting)

    assert runs.observe(running).status is Status.STOPPED
    assert runs.observe(running).reason == "job 7_1 of Slurm was cancelled (scancel)"
    assert runs.observe(waiting).status is Status.STOPPED
    assert "job 7_0 of Slurm is no longer in its array: cancelled (scancel)" in runs.observe(waiting).reason


def test_trials_of_a_step_are_an_array_whose_tasks_wait_and_are_cancelled_by_themselves(
    slurm: Programs, runs: RunsAtPlace
) -> None:
    trials = [runs.create(PLAN, "s", number) for number in range(3)]
    other = runs.create(PLAN.replace(time_limit="2h"), "s", 3)  # asks for a time
    begin(runs, *trials)
    asked = [call for call in slurm.known["asked"] if call[0] == "sbatch"]
    assert len(asked) == 1
    folder = studies_directory() / "s" / "arrays" / "1"
    assert asked[0][-1] == str(folder / "job.sh")
    script = (folder / "job.sh").read_text()
    assert "#SBATCH --array=0-2%16" in script
    assert f'places start {folder}/"$SLURM_ARRAY_TASK_ID"' in script
    assert f"#SBATCH --output={folder}/%a/job.log" in script
    assert 'requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"' in script
    assert subprocess.run(["bash", "-n", str(folder / "job.sh")], check=False).returncode == 0
    assert [(folder / str(task)).resolve() for task in range(3)] == [runs_directory() / run for run in trials]
    slurm.set_job("7_1", r="JobArrayTaskLimit")
    assert runs.start(trials[1]).startswith("job 7_1 of Slurm waits, as many tasks of its array run as may at once")

    runs.stop(trials[1], "not promising")

    assert [slurm.known["jobs"][f"7_{task}"]["T"] for task in range(3)] == ["PENDING", "CANCELLED", "PENDING"]
    begin(runs, other, runs.create(PLAN, "s", 4))
    scripts = [(folder.parent / name / "job.sh").read_text() for name in "23"]
    assert ["--time=130" in script for script in scripts] == [True, False]


def test_a_place_that_does_not_answer_is_asked_again_and_one_that_refuses_fails_the_trial(
    slurm: Programs, runs: RunsAtPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.set(refuses="Invalid account")
    first = runs.create(PLAN, "s", 0)
    with pytest.raises(DataError, match="Invalid account"):
        begin(runs, first)
    slurm.set(refuses="")
    runs = RunsAtPlace(PlaceName("slurm", "gpu"), PlaceRequest(gpus=1))
    begin(runs, first)
    slurm.set(refuses="Socket timed out on send/recv operation")
    monkeypatch.setattr(runs_at_place, "PAUSE_SECONDS", 0.0)
    second = runs.create(PLAN, "s", 1)
    for _ in range(runs_at_place.TRIES - 1):
        runs.start(second)
        assert "Socket timed out" in runs.start(second)
        assert runs.observe(second).status is Status.QUEUED
    runs.start(second)
    with pytest.raises(DataError, match="Socket timed out"):
        runs.start(second)


def test_a_search_keeps_its_place(runs: RunsAtPlace) -> None:
    directory = new_study.begin_study(define(), runs.devices, runs)
    with StudyDatabase(directory) as database:
        assert database.part.place == "slurm:gpu"
        assert database.part.place_request == PlaceRequest(gpus=1, nodes=1)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (PlaceName(HOST, "gpu1"), "has its own directory of runs"),
        (PlaceName("skypilot", "A100"), "would not be in"),
        (PlaceName("kubernetes", "c/n"), "would not be in"),
    ],
)
def test_places_that_cannot_train_trials_are_refused(name: PlaceName, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        RunsAtPlace(name, PlaceRequest(image="i", volume=f"v:{tmp_path}/elsewhere"))
