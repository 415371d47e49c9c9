"""Reads the state of each host, for lists and screens."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from accel_engine.devices.device_types import Device, Sample
from accel_engine.doctor.check import CheckReport
from accel_engine.errors import AccelError
from accel_engine.hosts.connection import HostRefusedError
from accel_engine.hosts.host_list import Host, read_hosts
from accel_engine.hosts.host_requests import CheckRequest, Ping, QueuedRun
from accel_engine.hosts.link import HostLink, link_to
from accel_engine.hosts.mirrored_runs import list_mirror
from accel_engine.run.runs.listing import RunList, RunSummary
from accel_engine.text import printable_fields
from accel_engine.words import numbers

LIST_SECONDS = 5.0
"""How long a host waits for news of its runs and devices before it answers that there are none."""

LIST_INTERVAL = 1.0
"""The least time between two questions for such news."""

CLOCK_SECONDS = 2.0
"""A difference of clocks that is worth a word."""


State: TypeAlias = Literal["connecting", "connected", "lost", "refused"]


@dataclass(frozen=True, slots=True)
class HostReading:
    """The latest reading of a host: its state, devices and runs."""

    host: str
    """Its name."""
    state: State = "connecting"
    message: str = ""
    """Why it is lost or refuses, and when it is tried again; of a connected one, what is to be known."""
    devices: tuple[Device, ...] = ()
    samples: tuple[Sample, ...] = ()
    """The latest readings of each device."""
    runs: tuple[RunSummary, ...] = ()
    """Its runs, newest first, as lists of runs have them."""
    queue: tuple[QueuedRun, ...] = ()
    """Its runs that wait, and what for."""


class HostReader:
    """Reads what is known of a host.

    Args:
        host: The host.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._runs = RunList(host.directory / "runs")

    def read(self, before: HostReading, seconds: float = 0.0) -> HostReading:
        """Ask for news, and mirror the list of its runs.

        Args:
            before: What was known before.
            seconds: How long to wait for news.
        """
        link: HostLink | None = None
        try:
            link, mirror = link_to(self._host.name), list_mirror(self._host.name)
            while (news := mirror.poll(0.0 if before.state == "connecting" else seconds, devices=True)).more:
                pass
            ahead = link.connection().ahead
        except AccelError as error:
            self._runs.refresh()
            wait = f"; tries again in {link.next_try:.0f} s" if link and link.next_try >= 1 else ""
            state: State = "refused" if isinstance(error, HostRefusedError) else "lost"
            return printable_fields(
                replace(before, state=state, message=f"{error}{wait}", samples=(), runs=self._runs.runs)
            )
        self._runs.refresh()
        return printable_fields(
            HostReading(
                self._host.name,
                "connected",
                about_clock(self._host.name, ahead),
                news.devices,
                news.samples,
                self._runs.runs,
                news.queue,
            )
        )


def about_clock(host: str, ahead: float) -> str:
    """That the clock of a host differs from the one here, in words; empty if it does not.

    Args:
        host: The host's name.
        ahead: Seconds by which its clock is ahead.
    """
    if abs(ahead) < CLOCK_SECONDS:
        return ""
    return f"{host}: its clock is {numbers.duration(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} the one here"


@dataclass(frozen=True, slots=True)
class CheckedLink:
    """The result of a check of a host."""

    connected: float
    """Seconds until it was connected."""
    answered: float
    """Seconds from a message to its answer."""
    versions: Mapping[str, str]
    """Its packages, by name."""
    clock: str
    """How its clock differs from the one here, in words; empty if it does not."""
    reports: tuple[CheckReport, ...]
    """The reports of the doctor there."""


def check_host(name: str) -> CheckedLink:
    """Check a host: the connection, versions, the clock, and the machine by its doctor; blocks.

    Raises:
        UsageError: There is no host of this name.
        RunError: The host cannot be reached.
    """
    begun = time.monotonic()
    connection = link_to(name).connection()
    connected = time.monotonic()
    connection.ask(Ping())
    answered = time.monotonic()
    reports: list[CheckReport] = []
    versions = connection.ask(CheckRequest(), reports.append).versions
    clock = about_clock(name, connection.ahead)
    return CheckedLink(connected - begun, answered - connected, versions, clock, tuple(reports))


def read_all() -> tuple[HostReading, ...]:
    """Read all hosts once, side by side.

    Raises:
        UsageError: The list of hosts is invalid.
    """
    hosts = read_hosts()
    with ThreadPoolExecutor(max(1, len(hosts))) as pool:
        return tuple(pool.map(lambda host: HostReader(host).read(HostReading(host.name)), hosts))


class HostFollower:
    """Reads one host again and again, in a thread, until :meth:`stop`; all followers of a host share the thread.

    Args:
        host: The host.
        on_news: Called with each new reading, from the thread, and at once with the latest one.
    """

    def __init__(self, host: Host, on_news: Callable[[HostReading], object]) -> None:
        self._host, self._on_news = host, on_news
        with _changing:
            if host not in _threads:
                _threads[host] = _FollowingThread(host)
            self._thread = _threads[host]
            self._thread.listeners.append(on_news)
        on_news(self.reading)

    @property
    def reading(self) -> HostReading:
        """The latest one."""
        return self._thread.reading

    def stop(self) -> None:
        """End soon."""
        with _changing:
            if self._on_news in self._thread.listeners:
                self._thread.listeners.remove(self._on_news)
            if not self._thread.listeners:
                _threads.pop(self._host, None)


class _FollowingThread:
    """Reads a host while anybody listens."""

    def __init__(self, host: Host) -> None:
        self.reading = HostReading(host.name)
        self.listeners: list[Callable[[HostReading], object]] = []
        self._reader = HostReader(host)
        threading.Thread(target=self._run, name=f"follow-{host.name}", daemon=True).start()

    def _run(self) -> None:
        begun = time.monotonic()
        while self.listeners or time.monotonic() - begun < LIST_INTERVAL:  # the first one comes in a moment
            begun = time.monotonic()
            new = self._reader.read(self.reading, LIST_SECONDS)
            if new != self.reading:
                self.reading = new
                for tell in list(self.listeners):
                    tell(new)
            time.sleep(max(0.0, begun + LIST_INTERVAL - time.monotonic()))


_threads: dict[Host, _FollowingThread] = {}
_changing = threading.Lock()
