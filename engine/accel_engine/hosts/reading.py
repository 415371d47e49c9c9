"""What is known of each host now, for lists and screens."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from accel_engine.devices.device_types import Device, Sample
from accel_engine.errors import AccelError
from accel_engine.hosts.connection import HostRefusedError
from accel_engine.hosts.host_list import Host, read_hosts
from accel_engine.hosts.host_requests import QueuedRun
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
    """What is known of a host."""

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
                _about_clock(self._host.name, ahead),
                news.devices,
                news.samples,
                self._runs.runs,
                news.queue,
            )
        )


def _about_clock(host: str, ahead: float) -> str:
    if abs(ahead) < CLOCK_SECONDS:
        return ""
    return f"{host}: its clock is {numbers.duration(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} the one here"


def read_all() -> tuple[HostReading, ...]:
    """Read all hosts once, side by side.

    Raises:
        UsageError: The list of hosts is invalid.
    """
    hosts = read_hosts()
    with ThreadPoolExecutor(max(1, len(hosts))) as pool:
        return tuple(pool.map(lambda host: HostReader(host).read(HostReading(host.name)), hosts))


class HostFollower:
    """Reads one host again and again, in a thread, until :meth:`stop`.

    Args:
        host: The host.
        on_news: Called from the thread with each new reading.

    Attributes:
        reading: The latest one.
    """

    def __init__(self, host: Host, on_news: Callable[[HostReading], object]) -> None:
        self.reading = HostReading(host.name)
        self._reader, self._on_news = HostReader(host), on_news
        self._stop = threading.Event()
        threading.Thread(target=self._run, name=f"follow-{host.name}", daemon=True).start()

    def stop(self) -> None:
        """End soon."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            new = self._reader.read(self.reading, LIST_SECONDS)
            if new != self.reading:
                self.reading = new
                self._on_news(new)
            self._stop.wait(max(0.0, begun + LIST_INTERVAL - time.monotonic()))
