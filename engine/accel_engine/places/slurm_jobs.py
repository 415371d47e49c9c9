"""Reads the state of Slurm's jobs: whether they wait, where and why, or how they have ended."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from accel_engine.deploy_folder.rendering import clean
from accel_engine.errors import RunError
from accel_engine.places.place import JobState, run_tool

PACKAGE = "Slurm's client, on a cluster's login nodes,"
"""The package that has Slurm's programs."""

RECENT_SECONDS = 1.0
"""How long an answer of Slurm is used for other jobs."""

_WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "CONFIGURING", "SUSPENDED", "RESV_DEL_HOLD")

_RUNNING = ("RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING")

_REASONS = {
    "None": "Slurm has not looked at it yet",
    "Resources": "for free nodes",
    "Priority": "jobs of higher priority come first",
    "Dependency": "for another job",
    "JobArrayTaskLimit": "as many tasks of its array run as may at once",
    "BeginTime": "it was requeued, and may start in a moment",
    "JobHeldUser": "held: scontrol release lets it start",
    "JobHeldAdmin": "held by an administrator",
    "PartitionDown": "the partition is down",
    "PartitionTimeLimit": "its time is longer than the partition allows",
    "PartitionNodeLimit": "it wants more nodes than the partition has",
    "PartitionConfig": "it asks for what the partition does not have",
    "ReqNodeNotAvail": "a node that it needs is down or reserved",
    "QOSMaxJobsPerUserLimit": "you have as many jobs as your quality of service allows",
    "AssocGrpCPUMinutesLimit": "your account has used its processor time",
    "NonZeroExitCode": "its script failed",
    "TimeLimit": "its time was over",
    "NodeFail": "a node failed",
}
"""Slurm's reasons, in words."""

_answers: dict[tuple[str, ...], tuple[float, str]] = {}
"""When each command was run last, and what it printed."""


def state_of_job(job: str) -> JobState:
    """The state of a job, or of a task of an array, as Slurm reports it.

    Raises:
        RunError: Slurm cannot be asked.
    """
    state, reason, partition, where = _row_of(job)
    if state in _WAITING:
        words = [f"job {job} of Slurm waits", _position(job, partition), _in_words(reason)]
        return JobState(waits=True, reason=", ".join(filter(None, words)))
    if state in _RUNNING:
        return JobState(runs=True, reason=f"job {job} of Slurm runs on {clean(where)}: the engine starts")
    return _ended_state(job)


def forget_answers() -> None:
    """Ask anew about all jobs: one was just submitted or cancelled."""
    _answers.clear()


def _position(job: str, partition: str) -> str:
    """The place of a job among those that wait in its partition, by priority."""
    with suppress(RunError):
        printed = _recent_answer(
            "squeue", "--noheader", "--states=PENDING", f"--partition={partition}", "--sort=-p,i", "--format=%i"
        )
        waiting = [*dict.fromkeys(line.strip().partition("_")[0] for line in printed.splitlines())]
        number = job.partition("_")[0]
        if number in waiting and len(waiting) > 1:
            return f"{waiting.index(number) + 1} of {len(waiting)} in {partition}"
    return ""


def _recent_answer(*command: str) -> str:
    """An answer of Slurm that is at most :data:`RECENT_SECONDS` old: the tasks of an array are asked for together."""
    now = time.monotonic()
    if command not in _answers or now - _answers[command][0] > RECENT_SECONDS:
        _answers[command] = now, run_tool(command, PACKAGE)
    return _answers[command][1]


def _row_of(job: str) -> list[str]:
    """State, reason, partition and nodes of a job or of a task of an array; empty texts if Slurm does not have it."""
    number, printed = job.partition("_")[0], ""
    with _unknown_job():
        printed = _recent_answer("squeue", "--noheader", "--array", "--jobs", number, "--format", "%i|%T|%r|%P|%N")
    rows = (line.strip().split("|") for line in printed.splitlines())
    return next((row[1:] for row in rows if row[0] == job and len(row) == 5), [""] * 4)


def _ended_state(job: str) -> JobState:
    """How a job has ended, as far as Slurm still knows."""
    with _unknown_job():
        try:
            printed = run_tool(["scontrol", "--oneliner", "show", "job", job], PACKAGE)
        except RunError as error:
            if "not found" not in str(error):
                raise
            why = f"job {job} of Slurm is no longer in its array: cancelled (scancel), if it has not ended long ago"
            return JobState(reason=why, is_cancelled=True)
        fields = dict(each.partition("=")[::2] for each in printed.split())
        state, reason = clean(fields.get("JobState", "")), _in_words(fields.get("Reason", ""))
        code = clean(fields.get("ExitCode", "").partition(":")[0])
        if state == "CANCELLED":
            return JobState(reason=f"job {job} of Slurm was cancelled (scancel)", is_cancelled=True)
        if state:
            words = [
                f"job {job} of Slurm is {state.lower()}",
                reason,
                f"exit status {code}" if code not in ("", "0") else "",
            ]
            return JobState(reason=", ".join(filter(None, words)))
    return JobState(reason=f"job {job} of Slurm has ended")


def _in_words(reason: str) -> str:
    reason = clean(reason).strip()
    known = _REASONS.get(reason.partition(",")[0].strip())
    return f"{known} ({reason})" if known and reason != "None" else known or reason


@contextmanager
def _unknown_job() -> Iterator[None]:
    """Pass over that Slurm does not know a job, as it does for some minutes only after that has ended."""
    try:
        yield
    except RunError as error:
        if "Invalid job id" not in str(error):
            raise
