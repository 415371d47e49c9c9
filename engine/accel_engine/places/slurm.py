"""Starts runs by Slurm: writes a batch script, submits it and asks the queue."""

import itertools
import math
import re
import secrets
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.deploy_folder.rendering import Block, Value, clean, dns_label, rendered, shell_text
from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError, UsageError, file_errors
from accel_engine.places import PlaceName, PlaceRequest
from accel_engine.places.place import (
    ArrayPlace,
    JobState,
    PlacedJob,
    job_folder,
    machine_devices,
    program_command,
    room_on,
    run_attached,
    run_tool,
)
from accel_engine.places.slurm_jobs import PACKAGE, forget_answers, state_of_job
from accel_engine.run.directory.run_paths import home
from accel_engine.text import suggestion

SCRIPT = "job.sh"
"""The batch script, in the run's directory."""

LOG = "job.log"
"""What the batch script prints."""

MAX_CORES = 16
"""Most cores that a process gets unless more are asked for."""

LEAST_SECONDS = 300.0
"""The shortest time of a job, in which it can start, train and save a checkpoint."""

MAX_TASKS = 1000
"""Most tasks of an array, as Slurm has it by default."""

_GPUS = re.compile(r"gpu(?::(?P<model>[\w.-]+))?:(?P<count>\d+)", re.ASCII)
"""GPUs among the generic resources of a node: ``gpu:a100:4(S:0-1)``."""

_OPTION = re.compile(r"--([a-zA-Z][\w-]*)(?:=(.+))?", re.ASCII)

_OWN_OPTIONS = ("array", "chdir", "nodes", "ntasks", "ntasks-per-node", "open-mode", "output", "signal", "wrap")
"""Options of sbatch that the script sets, so that a user cannot."""


@dataclass(frozen=True, slots=True)
class _Node:
    """The smallest node of a partition, as far as Slurm says."""

    cores: int = 0
    memory: int = 0
    """MiB."""
    gpus: int = 0
    """GPUs of the node that has most."""
    count: int = 1
    """The number of nodes."""


class Slurm(ArrayPlace):
    """A partition of the Slurm cluster that this machine belongs to; its default one without a detail.

    Args:
        name: Its name.
    """

    def __init__(self, name: PlaceName) -> None:
        super().__init__(name)
        self._node = _Node()

    def machine(self, request: PlaceRequest) -> tuple[Device, ...]:
        """See :meth:`Place.machine`: the GPUs of the nodes that have most, as their partition is often of one kind."""
        rows = [line.split("|") for line in self._sinfo("%R|%G|%a|%c|%m|%D").splitlines()]
        partitions = sorted({row[0] for row in rows})
        if self.name.detail and self.name.detail not in partitions:
            listed = f"; {suggestion(self.name.detail, partitions)}" if partitions else ""
            raise UsageError(f"Slurm has no partition {self.name.detail!r} here{listed}")
        rows = [row for row in rows if row[0] == (self.name.detail or self._default_partition(partitions))]
        if rows and all(row[2] != "up" for row in rows):
            raise UsageError(f"the partition {rows[0][0]} is {rows[0][2]}")
        found = [(int(each["count"]), each["model"] or "") for row in rows for each in _GPUS.finditer(row[1])]
        most, model = max(found, default=(0, ""))
        cores, memory = ([int(row[at].rstrip("+")) for row in rows if row[at].rstrip("+").isdecimal()] for at in (3, 4))
        if request.gpus is not None and found and request.gpus > most:
            raise UsageError(f"--gpus {request.gpus}: no node of the partition {rows[0][0]} has more than {most}")
        machines = sum(int(row[5]) for row in rows if row[5].isdecimal())
        self._node = _Node(min(cores, default=0), min(memory, default=0), most, machines)
        if machines and (request.nodes or 1) > machines:
            raise UsageError(f"--nodes {request.nodes}: the partition {rows[0][0]} has {machines}")
        return machine_devices(most if request.gpus is None else request.gpus, model)

    def room(self, request: PlaceRequest) -> int:
        """See :meth:`Place.room`."""
        return room_on(self._node.count, self._node.gpus, request)

    def files(self, job: PlacedJob) -> Mapping[str, str]:
        """See :meth:`Place.files`."""
        return {SCRIPT: rendered("job.sh", self._values(job), "places/job.sh")}

    def run(self, job: PlacedJob, words: Sequence[str], should_stop: Callable[[], bool]) -> int:
        """See :meth:`Place.run`: by ``srun``, which says that it waits."""
        for option in job.request.place_options:
            _checked(option)
        name = f"accel-tui-{words[0]}-{secrets.token_hex(4)}"
        where = ["--nodes=1", "--ntasks=1", f"--job-name={name}", f"--chdir={job_folder()}"]
        command = ["srun", *where, *self._resources(job), *job.request.place_options, *program_command(words)]

        def waits() -> bool:
            return "RUNNING" not in run_tool(["squeue", "--noheader", f"--name={name}", "--format=%T"], PACKAGE)

        return run_attached(command, PACKAGE, should_stop, waits)

    def submit(self, job: PlacedJob) -> str:
        """See :meth:`Place.submit`."""
        return _submitted(job.directory / SCRIPT)

    def submit_together(self, jobs: Sequence[PlacedJob], folder: Path, at_once: int) -> Iterator[tuple[PlacedJob, str]]:
        """See :meth:`ArrayPlace.submit_together`: an array for runs that need the same, whose tasks they are.

        An array has a folder with its script, and a link to the run of each task.
        """
        by_need: dict[tuple[str, ...], list[PlacedJob]] = {}
        for job in jobs:
            by_need.setdefault(tuple(self._resources(job)), []).append(job)
        arrays = [need[at : at + MAX_TASKS] for need in by_need.values() for at in range(0, len(need), MAX_TASKS)]
        for alike in arrays:
            array = _new_folder(folder)
            try:
                for index, job in enumerate(alike):
                    (array / str(index)).symlink_to(job.directory, target_is_directory=True)
                script = rendered("job.sh", self._values(alike[0], array, len(alike), at_once), "places/job.sh")
                (array / SCRIPT).write_text(script, "utf-8")
            except OSError as error:
                raise RunError(f"cannot write {error.filename}: {error.strerror}") from error
            number = _submitted(array / SCRIPT)
            yield from ((job, f"{number}_{index}") for index, job in enumerate(alike))

    def state(self, job: str) -> JobState:
        """See :meth:`Place.state`."""
        return state_of_job(job)

    def cancel(self, job: str) -> None:
        """See :meth:`Place.cancel`."""
        forget_answers()
        run_tool(["scancel", job], PACKAGE)

    def _sinfo(self, form: str) -> str:
        return run_tool(["sinfo", "--noheader", f"--format={form}"], PACKAGE)

    def _default_partition(self, partitions: list[str]) -> str:
        marked = {line.strip() for line in self._sinfo("%P").splitlines()}
        found = [name for name in partitions if f"{name}*" in marked]
        if not found:
            named = ", ".join(partitions) or "none"
            raise UsageError(f"Slurm has no default partition here: name one with slurm:PARTITION ({named})")
        return found[0]

    def _cores(self, job: PlacedJob) -> int:
        """Cores of a node for its process: what the plan says, or a share as its GPUs have; 0 if unknown."""
        share = job.gpus / self._node.gpus if job.gpus and self._node.gpus else 1.0
        return job.resolved.plan.threads or min(
            MAX_CORES, max(1, int(self._node.cores * share)) if self._node.cores else 0
        )

    def _resources(self, job: PlacedJob) -> list[str]:
        """The options that ask for each machine."""
        request, resources = job.request, []
        if self.name.detail:
            resources.append(f"--partition={self.name.detail}")
        if job.gpus:
            resources.append(f"--gres=gpu:{job.gpus}")
        if cores := request.cpus or self._cores(job):
            resources.append(f"--cpus-per-task={cores}")
        if request.host_memory or job.memory <= self._node.memory:  # a cluster that does not count memory says 1
            resources.append(f"--mem={job.memory}M")
        if job.seconds and job.seconds < LEAST_SECONDS:
            raise UsageError(
                f"--walltime must be at least {LEAST_SECONDS / 60:g}m: the engine is stopped two minutes before its end"
            )
        if job.seconds:
            resources.append(f"--time={math.ceil(job.seconds / 60)}")
        return resources

    def _values(self, job: PlacedJob, array: Path | None = None, count: int = 1, at_once: int = 1) -> dict[str, Value]:
        """The values of the script.

        Args:
            job: The run; one of an array's.
            array: The folder of an array, with the links to the runs of its tasks.
            count: Tasks of the array.
            at_once: Most tasks that run at the same time.
        """
        request, plan = job.request, job.resolved.plan
        folder = array or (job.plan_file.parent if job.plan_file else job.directory)
        what = f"run {job.directory.name}"
        name, process, number, tasks = job.directory.name, Block(shlex.join(job.arguments)), "$SLURM_JOB_ID", []
        if job.plan_file:
            what, name = plan.title, dns_label(plan.title)
        elif array:
            name = array.parent.parent.name
            what = f"{count} runs of the search {name}, a task each (see the links beside this file),"
            process = Block(f'{shlex.quote(str(array))}/"$SLURM_ARRAY_TASK_ID"')
            number = "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
            tasks = [f"--array=0-{count - 1}%{at_once}"]
        return {
            "what": Block(clean(what)),
            "script": Block(shell_text(str(folder / SCRIPT))),
            "name": f"accel-tui-{name}",
            "nodes": job.nodes,
            "resources": _lines([*tasks, *self._resources(job)]),
            "options": _lines([_checked(each) for each in request.place_options]),
            "folder": job_folder(),
            "log": _file_pattern(folder) + (f"/%a/{LOG}" if array else f"/{LOG}"),
            "home": str(home().absolute()),
            "python": sys.executable,
            "process": process,
            "place": str(self.name),
            "job": Block(f'"{number}"'),
        }


def _lines(options: list[str]) -> Block:
    return Block("\n".join(f"#SBATCH {each}" for each in options))


def _checked(text: str) -> str:
    """An option of sbatch that a user gives, quoted as sbatch reads it.

    Raises:
        UsageError: The text is not an option, or is one that the script sets.
    """
    found = _OPTION.fullmatch(text)
    if not found or clean(text) != text:
        raise UsageError(f"{text!r} is not an option of sbatch: give one such as --account=NAME")
    if found[1] in _OWN_OPTIONS:
        raise UsageError(f"--{found[1]} of sbatch is set by what the run needs; see --nodes, --walltime and --write")
    return f"--{found[1]}={shlex.quote(found[2])}" if found[2] else text


def _file_pattern(path: Path) -> str:
    """A path as sbatch takes it for output, where ``%`` begins a pattern."""
    return str(path).replace("%", "%%")


def _submitted(script: Path) -> str:
    """The number of the job that a batch script becomes.

    Raises:
        RunError: Slurm does not take it.
    """
    forget_answers()
    printed = run_tool(["sbatch", "--parsable", str(script)], PACKAGE)
    number = printed.strip().partition(";")[0]
    if not number.isdecimal():
        raise RunError(f"sbatch printed no number of a job, but {clean(printed)!r}")
    return number


def _new_folder(parent: Path) -> Path:
    """Make a folder that has the next number as its name.

    Raises:
        RunError: The folder cannot be made.
    """
    for number in itertools.count(1):
        folder = parent / str(number)
        with file_errors(f"cannot make {folder}"), suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder
    raise AssertionError
