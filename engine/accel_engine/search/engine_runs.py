"""The runs of trials: ordinary runs, trained by engine processes that the search or the queue starts."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device, Sample
from accel_engine.errors import DataError, RunError, UsageError
from accel_engine.events import CommandAnswered, EpochEnded, Event, PlanChanged, RunStarted
from accel_engine.plan import Plan
from accel_engine.plan.changed_plan import INTERVALS
from accel_engine.process import engine_process
from accel_engine.process.detached import leave
from accel_engine.process.start_run import prepare_continuation, prepare_run
from accel_engine.run import RunReader, Status, list_runs, read_run, reopen, runs_directory, send_command
from accel_engine.run.directory.checkpoint_files import check_any_whole
from accel_engine.run.directory.run_paths import CHECKPOINTS, latest_checkpoint
from accel_engine.run.history.history import History, fold, read_history
from accel_engine.run.store.sample_packing import SampleUnpacker
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.run_queue.free_devices import active_runs
from accel_engine.run_queue.queue import cancel, enqueue, entries, limit
from accel_engine.run_queue.queue_entries import QueueRequest
from accel_engine.search.trial_runs import Observation, RunMetrics

OUT_OF_MEMORY = "out of memory"
"""The reason of a run that ended because memory ran out."""

_LATENCY_SECONDS = 2.0
"""How long the latency is measured."""


class TrialStarter(Protocol):
    """Starts runs that wait."""

    def start(self, directory: Path) -> str:
        """Start a run that waits now, or when there is a device for it; returns why it is held, empty if it is not.

        Raises:
            DataError: The run cannot be started.
        """

    def cancel(self, directory: Path) -> None:
        """End a run that waits for a device."""


class DirectStarter:
    """Starts the engine of a run at once."""

    def start(self, directory: Path) -> str:
        """Start a run now."""
        leave(engine_process.start_engine(directory))
        return ""

    def cancel(self, directory: Path) -> None:
        """Do nothing: no run waits."""


class EngineRuns:
    """Runs that engine processes train.

    Args:
        starter: Starts them.
        devices: The devices of the machine that trains one; by default this machine's.

    Attributes:
        environment: Environment variables of engines, which may describe a cluster.
    """

    def __init__(self, starter: TrialStarter, devices: Sequence[Device] | None = None) -> None:
        self._starter = starter
        self.devices = detect().devices if devices is None else devices
        self.environment: Mapping[str, str] = os.environ
        self._followed: dict[str, _FollowedRun] = {}

    def slots(self) -> int:
        """The number of accelerators; 1 without any."""
        return max(1, sum(device.kind != "cpu" for device in self.devices))

    def ahead(self) -> int:
        """None: the search starts a trial when there is a device for it."""
        return 0

    def create(self, plan: Plan, study: str, trial: int | None) -> str:
        """Create a run that waits, tagged with the search's name."""
        environment = self.environment
        return prepare_run(plan, self.devices, queued=True, study=study, trial=trial, environment=environment).name

    def find(self, study: str) -> Mapping[str, int | None]:
        """The trials' numbers by the ids of a search's runs, oldest first; ``None`` for runs that confirm the best."""
        infos = [each.info for each in list_runs() if each.info and each.info.study == study]
        return {info.id: info.trial for info in sorted(infos, key=lambda info: info.created)}

    def exists(self, run: str) -> bool:
        """Whether a run was not deleted."""
        return (runs_directory() / run).is_dir()

    def start(self, run: str) -> str:
        """Start a run that waits; returns why it is held."""
        return self._starter.start(runs_directory() / run)

    def reopen(self, run: str, changes: Mapping[str, Any]) -> None:
        """Prepare an ended run to be continued; one that waits already, or was deleted, does not change.

        Raises:
            DataError: Its checkpoints are damaged.
        """
        directory = runs_directory() / run
        if not directory.is_dir() or self._run(run).status().live:
            return
        try:
            check_any_whole(directory / CHECKPOINTS)
        except RunError as error:
            raise DataError(str(error)) from error
        if latest_checkpoint(directory):
            how: Any = {"devices": self.devices, "environment": self.environment}
            prepare_continuation(directory, changes, queued=True, **how)
            return
        values = {**read_run(directory).plan_values, **changes}
        reopen(directory, Plan.from_mapping(values), queued=True)

    def observe(self, run: str) -> Observation:
        """Look at a run."""
        return self._run(run).observe()

    def stop(self, run: str, reason: str) -> None:
        """Ask a run to stop with a checkpoint."""
        if not (runs_directory() / run).is_dir():
            return
        if self._run(run).status() is Status.QUEUED:
            self._starter.cancel(runs_directory() / run)
            return
        with suppress(RunError):  # it has just ended
            send_command(runs_directory() / run, "stop", reason=reason)

    def figures(self, run: str, wanted: Collection[str]) -> Mapping[str, float]:
        """Figures of an ended run."""
        found = {name: MEASURES[name](runs_directory() / run) for name in wanted if name in MEASURES}
        return {name: value for name, value in found.items() if value is not None}

    def _run(self, run: str) -> "_FollowedRun":
        if run not in self._followed:
            self._followed[run] = _FollowedRun(runs_directory() / run)
        return self._followed[run]


class _FollowedRun:
    """A run, of which each look reads what is new."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._reader: RunReader | None = None
        self._history = History()
        self._changed: int | None = None

    def status(self) -> Status:
        return self._opened().info().status

    def observe(self) -> Observation:
        if not self._directory.is_dir():
            return Observation(Status.FAILED, reason="its run was deleted")
        reader = self._opened()
        info = reader.info()  # before the poll, so that the last events are not missed
        new = reader.poll().events
        self._history = fold(self._history, new)
        self._changed = changed_from(new, self._changed)
        ended = self._history.ended
        if info.status is Status.LOST:
            reason = "its engine was lost"
        else:
            reason = ended.reason if ended and not info.status.live else ""
        no_memory = reason == OUT_OF_MEMORY or info.memory_loss is not None
        measured, changed = measurements(self._history), ""
        if (first := self._changed) is not None:
            measured = tuple(each for each in measured if each.step <= first)
            changed = f"changed by the user after step {first:,}: only what it reached before counts"
        found = Observation(info.status, measured, OUT_OF_MEMORY if no_memory else reason, no_memory, changed)
        if not info.status.live:
            self._close()
        return found

    def _opened(self) -> RunReader:
        if self._reader is None:
            self._reader = RunReader(self._directory, steps=False, max_samples=0, past_phases=False)
            self._history, self._changed = History(), None
        return self._reader

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def measurements(history: History) -> tuple[RunMetrics, ...]:
    """The metrics at the ends of epochs and at the validations that the plan asked for."""
    found = {each.step: RunMetrics(each.epoch, each.step, each.time, each.metrics) for each in history.ended_epochs}
    for each in history.validations:
        if not each.by_command:
            known = found[each.step].metrics if each.step in found else {}
            named = {f"{VALIDATION_PREFIX}{name}": value for name, value in each.metrics.items()}
            found[each.step] = RunMetrics(each.epoch, each.step, each.time, {**known, **named})
    return tuple(found[step] for step in sorted(found))


def changed_from(events: Iterable[Event], known: int | None = None) -> int | None:
    """The first step, counted from 0, that was not trained with the plan of the trial, but as a user has changed it.

    Args:
        events: New events of the run.
        known: That step by the events before.

    Returns:
        The step; ``None`` if there is none.
    """
    for event in events:
        match event:
            case RunStarted(first_step=step) if known is not None:
                known = min(known, step)
            case PlanChanged(changes=changes) if changes.keys() <= {*INTERVALS}:
                pass  # it trains the same, and validates or saves at other steps
            case CommandAnswered(command="learning_rate", obeyed=True, step=step) | PlanChanged(step=step):
                known = step if known is None else min(known, step)
    return known


def _training_seconds(directory: Path) -> float | None:
    """Seconds of training over all epochs, without validation and checkpoints; ``None`` before the first epoch."""
    epochs = read_history(directory, RunStarted, EpochEnded).ended_epochs
    return sum(each.seconds for each in epochs) if epochs else None


def _peak_memory(directory: Path) -> float | None:
    """The most bytes of an accelerator that the run has allocated; without one, of the engine's process.

    Samples have all devices of the machine, but only those of the run have ``allocated_peak``. ``None`` if unknown.
    """
    with closing(RunReader(directory, steps=False)) as reader:
        batches = reader.sample_batches(SampleUnpacker())
        samples = [sample for _, batch in batches for sample in batch]
    found = [*_values(samples, "allocated_peak")] or _values(samples, "engine_memory")
    return max(found, default=None)


def _measured_latency(directory: Path) -> float | None:
    """Median seconds of a prediction for one example, measured in a separate process; ``None`` if that fails.

    Raises:
        RunError: The model cannot be measured.
    """
    from accel_engine.inference.candidate import Candidate
    from accel_engine.process.inference_bench import InferenceBench  # seldom needed
    from accel_engine.requests.bench_models import BenchOptions

    options = BenchOptions(
        scenario="single-stream", batch_sizes=(1,), seconds=_LATENCY_SECONDS, xla="off", metrics=False
    )
    found: list[object] = []
    InferenceBench([directory], options).measure(found.append)
    medians = [
        each.percentiles["p50"].value for each in found if isinstance(each, Candidate) and "p50" in each.percentiles
    ]
    return min(medians, default=None)


def _values(samples: list[Sample], name: str) -> Iterator[float]:
    for sample in samples:
        reading = sample.readings.get(name)
        if reading is not None and reading.value is not None:
            yield reading.value


MEASURES = {"time": _training_seconds, "memory": _peak_memory, "latency": _measured_latency}
"""What measures each of :data:`accel_engine.search.definition.FIGURES`."""


class QueueStarter:
    """Adds runs to the queue.

    On a machine without accelerators, where no other run trains or waits, a run is started at once: the queue's process
    would have nothing to decide, and takes a second to start. So is one of a search that asks for several at once
    there, unless the queue has a limit: without one, it has one run at a time on the CPU.

    Args:
        group: Name of the search.
        at_once: Most of its runs at the same time; 0 for as many as there are devices.
        devices: The devices of the machine.
    """

    def __init__(self, group: str, at_once: int, devices: Sequence[Device]) -> None:
        self._request = QueueRequest(group=group, at_once=at_once)
        self._is_cpu_only = all(device.kind == "cpu" for device in devices)
        self._direct = DirectStarter()

    def start(self, directory: Path) -> str:
        """Start a run when there is a device for it; one that is in the queue stays there.

        Returns:
            Why it is held in the queue; empty if it is not.

        Raises:
            DataError: The queue could not start it.
            RunError: The queue cannot be read or written.
        """
        waiting = entries()
        if entry := next((entry for entry in waiting if entry.run == directory.name), None):
            if entry.has_failed:
                raise DataError(entry.reason)
            return entry.reason if entry.is_held else ""
        if self._is_cpu_only and (not (waiting or active_runs(())) or (self._request.at_once > 1 and limit() is None)):
            return self._direct.start(directory)
        try:
            enqueue(directory, self._request)
        except RunError:
            if _status(directory) is Status.QUEUED:
                raise  # else somebody has started it meanwhile
        return ""

    def cancel(self, directory: Path) -> None:
        """End a run that waits."""
        with suppress(RunError, UsageError):  # it has just started, or ended
            cancel(directory.name)


def _status(directory: Path) -> Status:
    with suppress(RunError):
        return read_run(directory).status
    return Status.LOST
