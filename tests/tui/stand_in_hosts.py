"""Hosts for screen tests: readings as a host tells them, without ssh."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from accel_engine.devices.device_types import CountedItem, Device, Reading, Sample
from accel_engine.hosts.host_list import Host
from accel_engine.hosts.host_requests import QueuedRun
from accel_engine.hosts.reading import HostReading
from accel_engine.plan import Plan
from accel_engine.run import RunInfo, RunSummary, Status
from accel_engine.run.directory.run_paths import hosts_directory

GIB = 1 << 30


def gpu_devices(count: int) -> tuple[Device, ...]:
    """A CPU and some GPUs."""
    gpus = (Device(f"gpu:{each}", "gpu", "NVIDIA H200", 141 * GIB) for each in range(count))
    return (Device("cpu:0", "cpu", "AMD EPYC 9654", 512 * GIB, 96), *gpus)


def samples_of(uses: Mapping[str, tuple[float, float, str]], at: float) -> tuple[Sample, ...]:
    """Samples by device: use and memory in percent, and a program that computes there."""
    return tuple(
        Sample(
            at,
            device,
            {
                "utilization": Reading(use, "%"),
                "memory_used": Reading(memory / 100 * 141 * GIB, "B"),
                "memory_total": Reading(141.0 * GIB, "B"),
                "processes": Reading.counted((CountedItem(program, "4711", computes=True),) if program else ()),
            },
        )
        for device, (use, memory, program) in uses.items()
    )


def run_of(host: str, name: str, status: Status, **values: object) -> RunSummary:
    """A run of a host."""
    directory = hosts_directory() / host / "runs" / name if host else Path("runs") / name
    plan = Plan(model="resnet20", data="cifar10")
    info = RunInfo(name, directory, plan, dict(plan.changed()), time.time() - 300, host, 4711, status)
    run = RunSummary(f"{host}:{name}" if host else name, directory, info, steps=4200)
    known: dict[str, object] = {"total_steps": 10_000, "monitor": "validation_accuracy", "best": 0.8712}
    known["curve"] = (0.4, 0.6, 0.7, 0.8, 0.85, 0.87)
    return replace(run, **(known | values))  # type: ignore[arg-type]


@dataclass
class StandInHosts:
    """Takes the place of the list of hosts and of what follows them."""

    readings: dict[str, HostReading] = field(default_factory=dict)
    tell: dict[str, Callable[[HostReading], object]] = field(default_factory=dict)
    """What each reading is told to, by host."""
    stopped: list[str] = field(default_factory=list)

    def follow(self, host: Host, on_news: Callable[[HostReading], object]) -> "_Follower":
        """Tell the reading of a host at once."""
        self.tell[host.name] = on_news
        if host.name in self.readings:
            on_news(self.readings[host.name])
        return _Follower(self, host.name)

    def list(self) -> tuple[Host, ...]:
        """The hosts."""
        return tuple(map(Host, self.readings))


@dataclass
class _Follower:
    hosts: StandInHosts
    name: str

    def stop(self) -> None:
        self.hosts.stopped.append(self.name)


def busy_host(name: str, gpus: int, at: float) -> HostReading:
    """A host whose first GPUs train, and where a run waits."""
    uses = {"cpu:0": (23.0, 12.0, "")} | {
        f"gpu:{each}": (max(0.0, 97.0 - 14 * each), max(1.0, 80.0 - 11 * each), "python" if each == 3 else "")
        for each in range(gpus)
    }
    runs = (
        run_of(name, "0726-101500-cc", Status.QUEUED, steps=0, best=None, curve=()),
        run_of(name, "0726-093000-ab", Status.RUNNING, devices=("gpu:0", "gpu:1")),
        run_of(name, "0726-091500-bb", Status.PAUSED, devices=("gpu:2",), steps=900),
        run_of(name, "0725-220000-dd", Status.FINISHED, steps=10_000, best=0.9134),
        run_of(name, "0725-210000-ee", Status.FAILED, reason="out of memory on gpu:1"),
    )
    waits = (QueuedRun("0726-101500-cc", "waits for gpu:0 and gpu:1"),)
    return HostReading(name, "connected", "", gpu_devices(gpus), samples_of(uses, at), runs, waits)


def lost_host(name: str) -> HostReading:
    """A host that cannot be reached."""
    message = f"{name}: ssh: connect to host {name} port 22: Network is unreachable; tries again in 12 s"
    return HostReading(name, "lost", message)
