"""The inputs of the checks in one value, which tests can replace, with the answers of the NVIDIA driver."""

import contextlib
import os
import platform
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from packaging.version import InvalidVersion, Version

from accel_engine.devices.device_types import Device
from accel_engine.devices.installation import installed_versions
from accel_engine.devices.nvidia_gpu import NvidiaProbe
from accel_engine.doctor.check import call_in_thread
from accel_engine.doctor.tf_probe import TensorFlowDevices, probe_tensorflow
from accel_engine.run.directory.run_paths import home

_Result = TypeVar("_Result")


def once(function: Callable[[], _Result]) -> Callable[[], _Result]:
    """Cache the result of the first call. Thread-safe."""
    lock = threading.Lock()
    results: list[_Result] = []

    def cached() -> _Result:
        with lock:
            if not results:
                results.append(function())
            return results[0]

    return cached


def installed_version(distribution: str) -> str:
    """The version of an installed distribution; empty if it is not installed."""
    return installed_versions(distribution).get(distribution, "")


def _requirements_of(distribution: str) -> Sequence[str]:
    """The requirements in an installed distribution's metadata."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.requires(distribution) or ()
    return ()


DRIVER_TIMEOUT = 20.0
"""Timeout in seconds: waking eight GPUs takes several."""


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver.

    Attributes:
        version: Its version; empty if no driver responds.
        cuda: The newest CUDA version that it supports, e.g. ``(12, 8)``; ``(0, 0)`` if unknown.
        gpus: Its GPUs, regardless of ``CUDA_VISIBLE_DEVICES``.
        memory_shares: Pairs of a GPU's id and the share of its memory in use.
        problem: Why it finds no GPU.
        timed_out: Whether it did not respond in time.
    """

    version: str = ""
    cuda: tuple[int, int] = (0, 0)
    gpus: tuple[Device, ...] = ()
    memory_shares: tuple[tuple[str, float], ...] = ()
    problem: str = ""
    timed_out: bool = False


def query_driver(timeout: float = DRIVER_TIMEOUT) -> Driver:
    """Query the driver.

    Args:
        timeout: Seconds to wait; if the driver hangs, its thread is abandoned.
    """
    try:
        return call_in_thread(_query, "query-driver").result(timeout)
    except TimeoutError:
        return Driver(problem=f"the NVIDIA driver does not respond within {timeout:g} s", timed_out=True)


def _query() -> Driver:
    probe = NvidiaProbe()
    try:
        inventory = probe.inventory()
        shares = []
        for sample in probe.sample():
            used, total = (sample.readings.get(name) for name in ("memory_used", "memory_total"))
            if used and total and used.value is not None and total.value:
                shares.append((sample.device, used.value / total.value))
        version, cuda = _versions()
        problem = " ".join(kind.reason for kind in inventory.unavailable)
        return Driver(version, cuda, inventory.devices, tuple(shares), problem)
    finally:
        probe.close()


def _versions() -> tuple[str, tuple[int, int]]:
    """The driver's version, and the newest CUDA version that it supports; call it while the library is open."""
    import pynvml

    version, cuda = "", 0
    with contextlib.suppress(pynvml.NVMLError):
        raw = pynvml.nvmlSystemGetDriverVersion()
        version = raw.decode(errors="replace") if isinstance(raw, bytes) else raw
        cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    return version, (cuda // 1000, cuda % 1000 // 10)


@dataclass(frozen=True, slots=True)
class Machine:
    """The inputs of the checks.

    Attributes:
        environment: Environment variables.
        root: Parent directory of ``sys``, ``dev`` and ``proc``.
        temporary: The directory of temporary files.
        home: The program's directory, with the runs.
        processor: The kind of processor, such as ``x86_64``.
        version: Returns the version of a distribution; empty if it is not installed.
        requirements: Returns the requirements of a distribution.
        driver: Queries the NVIDIA driver; cached.
        tensorflow: Probes TensorFlow in a separate process; cached.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    root: Path = Path("/")
    temporary: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    home: Path = field(default_factory=home)
    processor: str = field(default_factory=platform.machine)
    version: Callable[[str], str] = installed_version
    requirements: Callable[[str], Sequence[str]] = _requirements_of
    driver: Callable[[], Driver] = field(default_factory=lambda: once(query_driver))
    tensorflow: Callable[[], TensorFlowDevices] = field(default_factory=lambda: once(probe_tensorflow))

    @property
    def in_container(self) -> bool:
        """Whether this is a container, to which not all of the host's devices may be passed."""
        return any((self.root / marker).exists() for marker in (".dockerenv", "run/.containerenv"))


def parse_version(text: str) -> Version:
    """Parse a version; 0 for a text that is none by PEP 440."""
    try:
        return Version(text)
    except InvalidVersion:
        return Version("0")
