"""The state of each host, and its runs as rows: runs that train, runs that wait, and the last that have ended."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from accel_engine.devices.device_types import Device
from accel_engine.doctor.check import CheckResult
from accel_engine.hosts.reading import CheckedLink, HostReading
from accel_engine.places import HERE
from accel_engine.process.engine_process import package_versions
from accel_engine.run import RunSummary, Status
from accel_engine.run.directory.run_paths import host_of_run
from accel_engine.words import numbers
from accel_tui.formatting.bars import bar
from accel_tui.formatting.bench_figures import bench_figure
from accel_tui.formatting.table_columns import ALL_ROOM, Column, column_width
from accel_tui.formatting.text import base_name
from accel_tui.run_list.columns import COLUMNS, SYMBOLS, RunColumn, best_value_text, plan_value, run_title
from accel_tui.run_list.groups import short_metric_name
from accel_tui.run_state.device_meter import Meter, record_device

ENDED = 3
"""How many ended runs of a host are listed at least; all are on *Runs*."""

SIGNS: Mapping[str, tuple[str, str]] = {
    "connected": ("●", "success"),
    "connecting": ("◌", "accent"),
    "lost": ("?", "error"),
    "refused": ("✗", "error"),
}
"""The symbol and the theme colour of each state of a host."""

_BAR, _WIDEST_BAR = 11, 21  # cells of a bar with its percentage

_ON_THE_WAY = (Status.RUNNING, Status.PAUSED)

_WIDEST_NAME = 36  # cells of a run's name: one that the program makes has no more than a cell more


@dataclass(frozen=True, slots=True)
class HostView:
    """A host as the screen shows it; all texts are safe for a terminal."""

    reading: HostReading
    """The latest reading of it."""
    meters: Mapping[str, Meter] = field(default_factory=dict)
    """The latest metrics of its devices, by their ids, with their utilization before."""

    @property
    def name(self) -> str:
        """Its name, which identifies it; :data:`~accel_engine.places.HERE` for this machine."""
        return self.reading.host

    @property
    def title(self) -> str:
        """Its name on the screen."""
        return "this machine" if self.name == HERE else self.name

    @property
    def message(self) -> str:
        """Its message, without its name before it."""
        return self.reading.message.removeprefix(f"{self.name}: ")

    def updated(self, reading: HostReading) -> "HostView":
        """The same host with a new reading; samples that were read before add nothing to the history."""
        new = [each for each in reading.samples if each not in self.reading.samples]
        known = {device.id for device in reading.devices}
        meters = {name: meter for name, meter in self.meters.items() if name in known}
        return HostView(reading, record_device(meters, new))

    @property
    def training(self) -> list[RunSummary]:
        """The runs that train, or are paused."""
        return [run for run in self.reading.runs if run.status and run.status.has_engine]

    @property
    def waiting(self) -> list[RunSummary]:
        """The runs that wait, in their order."""
        places = {each.id: place for place, each in enumerate(self.reading.queue)}
        found = [
            run for run in reversed(self.reading.runs) if run.status is Status.QUEUED
        ]  # runs without a known place: in the order in which they were added
        return sorted(found, key=lambda run: places.get(run.directory.name, len(places)))

    @property
    def ended(self) -> list[RunSummary]:
        """The other runs, newest first."""
        return [run for run in self.reading.runs if run.status is None or not run.status.live]

    def rows(self, ended: int = ENDED) -> list[RunSummary]:
        """The runs to list, with the latest ones that have ended."""
        return [*self.training, *self.waiting, *self.ended[:ended]]

    @property
    def is_connected(self) -> bool:
        """Whether it is this machine, or answers."""
        return self.reading.state == "connected"

    @property
    def counts(self) -> str:
        """How many of its runs train, wait, and have ended."""
        parts = ((len(self.training), "running"), (len(self.waiting), "queued"), (len(self.ended), "ended"))
        return ", ".join(f"{number:,} {word}" for number, word in parts if number) or "no runs"

    @property
    def note(self) -> str:
        """Its state where it does not answer, the counts of its runs, and what is to be known of it."""
        state = "" if self.is_connected else self.reading.state
        about = f"{state}: {self.message}" if state and self.message else state or self.message
        return "  ".join(part for part in (self.counts, about) if part)

    def users(self, device: Device) -> tuple[str, ...]:
        """Who uses a device: the runs that train on it; of a GPU without one, the programs that compute on it."""
        names = [_short_title(run) for run in self.training if device.id in run.devices]
        if names or device.id not in self.meters:
            return tuple(names)
        return tuple(each.name for each in self.meters[device.id].reading("processes").items if each.computes)


def _short_title(run: RunSummary) -> str:
    """A run's title without its host."""
    return run_title(replace(run, id=run.directory.name))


def _progress_share(run: RunSummary) -> float | None:
    """The share of its steps that a run has taken; ``None`` if unknown."""
    return min(run.steps / run.total_steps, 1.0) if run.total_steps else None


def joined_devices(devices: Sequence[str]) -> str:
    """Ids of devices in short: ``gpu:0,1``."""
    kinds: dict[str, list[str]] = {}
    for device in devices:
        kind, _, number = device.partition(":")
        kinds.setdefault(kind, []).append(number)
    return " ".join(f"{kind}:{','.join(found)}" for kind, found in kinds.items())


def _progress(run: RunSummary, width: int) -> str:
    share = _progress_share(run)
    if run.status not in _ON_THE_WAY or share is None:
        return ""
    return f"{bar(share, width - 5, rest=' ')} {int(100 * share):3}%"


def _about(run: RunSummary, why: Mapping[str, str]) -> str:
    """How far a run is, why it waits, or why it has ended."""
    if run.info is None:
        return run.problem
    if run.status is Status.QUEUED:
        return why.get(run.id, "")
    if run.info.waiting:
        return run.info.waiting.waiting
    if run.status and run.status.live:
        steps = f"{run.steps:,} of {run.total_steps:,} steps" if run.total_steps else f"{run.steps:,} steps"
        return f"{run.status}, {steps}" if run.status is not Status.RUNNING else steps
    return f"{run.status}: {run.reason}" if run.reason else str(run.status)


def waiting_reasons(views: Sequence[HostView]) -> dict[str, str]:
    """Why runs wait, by their ids in lists."""
    return {
        f"{view.name}:{each.id}" if view.name != HERE else each.id: each.why
        for view in views
        for each in view.reading.queue
    }


def host_name(run: RunSummary) -> str:
    """The name of the host of a run; :data:`~accel_engine.places.HERE` for this machine."""
    return host_of_run(run.directory) or HERE


def host_run_columns(runs: Sequence[RunSummary], why: Mapping[str, str]) -> Sequence[RunColumn]:
    """The columns of the list of hosts' runs; columns that do not fit beside the names are hidden.

    Args:
        runs: The runs.
        why: Why runs wait, by their ids.
    """
    listed = {column.title: column for column in COLUMNS}
    names = column_width("run", map(_short_title, runs), _WIDEST_NAME)
    return (
        Column("", 1, lambda run, _: SYMBOLS[run.status][0], colour=lambda run: SYMBOLS[run.status][1]),
        Column("run", names, lambda run, _: _short_title(run), middle=True),
        Column("model", 8, _field("model"), drop_priority=4, widest=12),
        Column("data", 8, _field("data"), drop_priority=5, widest=12),
        Column("on", 7, lambda run, _: joined_devices(run.devices), drop_priority=3, widest=14),
        Column(
            "progress",
            _BAR,
            lambda *_: "",
            colour=lambda _: "primary",
            draw=_progress,
            drop_priority=1 if any(run.status in _ON_THE_WAY for run in runs) else 9,
            widest=_WIDEST_BAR,
        ),
        Column("metric", 10, _metric, drop_priority=2, widest=12),
        Column("best", 8, lambda run, _: best_value_text(run) or "—", right=True),
        replace(listed["curve"], drop_priority=6, sort_key=None),
        replace(listed["created"], drop_priority=2, sort_key=None),
        Column(
            "about",
            22,
            lambda run, _: _about(run, why),
            colour=lambda run: "error" if run.status in (Status.FAILED, Status.LOST) else "note",
            widest=ALL_ROOM,
            header="",
        ),
    )


def _field(name: str) -> Callable[[RunSummary, float], str]:
    return lambda run, _: base_name(plan_value(run, name))  # cut once, to the width that the column gets


def _metric(run: RunSummary, _: float) -> str:
    if run.best is not None and run.info and run.info.bench:
        return bench_figure(run.monitor, run.info).title
    return short_metric_name(run.monitor) if run.best is not None else ""


def host_check_lines(name: str, found: CheckedLink) -> list[str]:
    """The results of a check of a host, without its doctor's reports."""
    here = package_versions()
    lines = [f"{name}: connected in {found.connected:.1f} s, answers in {numbers.latency(found.answered)}"]
    for package, version in found.versions.items():
        differs = f" (here {here[package]})" if package in here and here[package] != version else ""
        lines.append(f"  {package} {version}{differs}")
    return [*lines, f"  {found.clock or 'its clock agrees with the one here'}"]


def problem_lines(found: CheckedLink) -> list[str]:
    """The problems that the doctor of a host has found, with their remedies."""
    wrong = [each for each in found.reports if each.finding.verdict in (CheckResult.WARN, CheckResult.FAIL)]
    lines = [f"{each.check}: {each.finding.summary}. {each.finding.fix}".strip() for each in wrong]
    return lines or ["accel-tui doctor finds nothing wrong there."]


def accelerators_text(reading: HostReading) -> str:
    """The accelerators of a host in words, or that it has only a CPU."""
    count = sum(device.kind != "cpu" for device in reading.devices)
    return numbers.counted(count, "accelerator") if count else "CPU"


def summary_line(views: Sequence[HostView]) -> str:
    """All hosts in a sentence: how many answer, how busy their accelerators are, and their runs."""
    others = [view for view in views if view.name != HERE]
    connected = sum(view.is_connected for view in others)
    parts = [f"{connected} of {numbers.counted(len(others), 'host')} connected"] if others else []
    accelerators = [
        (view, device) for view in views if view.is_connected for device in view.reading.devices if device.kind != "cpu"
    ]
    if accelerators:
        free = sum(not view.users(device) for view, device in accelerators)
        parts.append(f"{free} of {len(accelerators)} accelerators free")
    training, waiting = sum(len(view.training) for view in views), sum(len(view.waiting) for view in views)
    return ", ".join([*parts, f"{training:,} running", f"{waiting:,} queued"])
