"""Decides which runs start, on which devices, and why the others wait: a pure function."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from accel_engine.run_queue.needs import RunNeeds
from accel_engine.run_queue.queue_entries import QueueRequest, WaitReason
from accel_engine.words import numbers

MAX_NAMED = 3
"""Runs that a reason names."""

IDLE_SECONDS = 2.0
"""How long an accelerator must have been idle to be free: three readings, as a program also waits between steps."""

STAYS_IDLE = f"is free if it stays idle for {IDLE_SECONDS:g} s"
"""The reason to wait for an accelerator that has just become idle."""

_KEPT = "is kept for a higher priority"


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that waits."""

    run: str
    """Its id."""
    request: QueueRequest
    """Its request: priority, devices and group."""
    need: RunNeeds = field(default_factory=RunNeeds)
    """The needs of its plan."""
    blocked: str = ""
    """Why it must not start now, whatever is free; empty if it may."""


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A live run of this machine."""

    run: str
    """Its id."""
    devices: tuple[str, ...] = ()
    """Ids of its accelerators; empty on the CPU, or if they are not known."""
    group: str = ""
    """The group of its entry, if it was started from the queue."""
    is_starting: bool = False
    """Whether it has not recorded yet which devices it uses."""


@dataclass(frozen=True, slots=True)
class FreeDevices:
    """The accelerators in use, the free memory and the limit of runs of the machine."""

    in_use: Mapping[str, str] = field(default_factory=dict)
    """Who uses an accelerator besides runs of this program, by its id; empty for nobody."""
    memory: int = 1 << 62
    """Bytes of the host's memory that are available."""
    at_once: int | None = None
    """Most runs at once; ``None`` for as many as there are accelerators, or one on the CPU."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The runs that start, and the reasons why others wait."""

    starts: Mapping[str, tuple[str, ...]]
    """The devices of the runs to start, by their ids, in order; none for a run on the CPU."""
    waits: Mapping[str, WaitReason]
    """Why the others wait, by their ids."""

    @property
    def reasons(self) -> dict[str, str]:
        """Why the others wait, in words."""
        return {run: reason.text for run, reason in self.waits.items()}


def decide(candidates: Sequence[WaitingRun], active: Iterable[ActiveRun], machine: FreeDevices) -> Decision:
    """Decide which runs start now.

    A run whose devices are not free is overtaken by runs of its priority that fit. For runs of lower priority, the
    free devices that it could use are not free.

    Args:
        candidates: The runs that wait, in the order in which they shall start.
        active: The live runs.
        machine: What is free besides.
    """
    plan = _Plan(list(active), machine)
    for candidate in candidates:
        plan.place(candidate)
    return Decision(plan.starts, plan.waits)


class _Plan:
    """The runs that are placed so far."""

    def __init__(self, active: list[ActiveRun], machine: FreeDevices) -> None:
        self.starts: dict[str, tuple[str, ...]] = {}
        self.waits: dict[str, WaitReason] = {}
        self._active = active
        self._machine = machine
        self._memory = machine.memory
        self._groups = Counter(run.group for run in active)
        self._users = dict(machine.in_use)
        for run in active:
            devices = (
                [device for device in machine.in_use if not self._users[device]] if run.is_starting else run.devices
            )
            self._users |= dict.fromkeys(devices, f"run {run.run}")
        self._reserved: dict[str, int] = {}

    def place(self, candidate: WaitingRun) -> None:
        """Start a run, or note why it waits."""
        text = candidate.blocked or self._over_limit(candidate)
        reason = WaitReason(text) if text else self._on_devices(candidate)
        if reason:
            self.waits[candidate.run] = reason

    def _over_limit(self, candidate: WaitingRun) -> str:
        """Why no further run may train now; empty if it may."""
        request, at_once = candidate.request, self._machine.at_once
        if request.group and request.at_once and self._groups[request.group] >= request.at_once:
            return f"{self._groups[request.group]} of {request.group} train already, the most at once"
        if at_once is not None and len(self._active) >= at_once:
            return f"at most {numbers.counted(at_once, 'run')} at once: {_trains(self._active)}"
        on_cpu = [run for run in self._active if not run.devices and not (run.is_starting and self._machine.in_use)]
        if candidate.need.kind == "cpu" and at_once is None and on_cpu:
            return f"{_trains(on_cpu)}; one at once on the CPU"
        return ""

    def _on_devices(self, candidate: WaitingRun) -> WaitReason | None:
        """Start a run if its devices and memory are free; returns why it waits."""
        need, priority = candidate.need, candidate.request.priority
        free = [
            device
            for device in need.devices
            if not self._users.get(device) and self._reserved.get(device, priority) <= priority
        ]
        if len(free) < need.count:
            self._reserved |= {device: max(priority, self._reserved.get(device, priority)) for device in free}
            return self._waits_for_devices(need, free)
        if need.memory > self._memory:
            room = numbers.size(self._memory)
            return WaitReason(f"needs {numbers.size(need.memory)} of memory, and {room} are available")
        self._start(candidate, tuple(free[: need.count]))
        return None

    def _start(self, candidate: WaitingRun, devices: tuple[str, ...]) -> None:
        self.starts[candidate.run] = devices
        self._users |= dict.fromkeys(devices, f"run {candidate.run}")
        self._memory -= candidate.need.memory
        self._groups[candidate.request.group] += 1
        self._active.append(ActiveRun(candidate.run, devices, candidate.request.group))

    def _waits_for_devices(self, need: RunNeeds, free: list[str]) -> WaitReason:
        wanted = f"{need.count} free of {len(need.devices)}" if len(need.devices) > 1 else f"{need.devices[0]} free"
        users = [f"{device} {self._users.get(device) or _KEPT}" for device in need.devices if device not in free]
        in_use = self._machine.in_use
        others = tuple(
            each for each in need.devices if each not in free and in_use.get(each, "") not in ("", STAYS_IDLE)
        )
        return WaitReason(f"needs {wanted}: {', '.join(users)}", others)


def _trains(active: Sequence[ActiveRun]) -> str:
    """That runs train: of many, how many more."""
    return f"{numbers.listed((run.run for run in active), MAX_NAMED)} train{'s' * (len(active) == 1)}"
