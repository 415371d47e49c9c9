"""The inputs of the checks in one value, which tests can replace, with the answers of the NVIDIA driver."""

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from packaging.version import InvalidVersion, Version

from accel_engine.arrow import problem_beside_tensorflow
from accel_engine.devices.device_types import Device
from accel_engine.devices.installation import installed_versions
from accel_engine.devices.nvidia_gpu import NvidiaProbe
from accel_engine.devices.pci_address import read_word
from accel_engine.doctor.check import call_in_thread
from accel_engine.doctor.python_checks import Interpreter
from accel_engine.doctor.tf_probe import TensorFlowDevices, probe_devices, probe_tensorflow, xla_flags_problem
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


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """The settings of a GPU by an administrator, and requests of its driver; ``None`` where they are unknown."""

    gpu: str
    compute_mode: int | None = None
    """0 for any number of processes, 1 and 3 for one, 2 for none."""
    persistence: bool | None = None
    """Whether the driver stays loaded while nobody uses the GPU."""
    mig: bool | None = None
    """Whether it is divided into MIG instances, of which there may be none."""
    instances: int = 0
    """Number of MIG instances."""
    power_limit: float | None = None
    """The enforced limit in W."""
    default_power: float | None = None
    """Its default limit in W."""
    pending_ecc: bool | None = None
    """Whether error correction will be switched on or off by a restart."""
    remapping: bool | None = None
    """Whether memory rows wait to be replaced by a reset."""
    remapping_failed: bool | None = None
    """Whether rows could not be replaced."""
    recovery: int | None = None
    """What the driver asks for: a value of ``NVML_GPU_RECOVERY_ACTION``; 0 for nothing."""
    links: int = 0
    """Number of active NVLinks."""


NVIDIA = "0x10de"
"""NVIDIA's PCI vendor id."""

DISPLAY = "0x03"
"""Prefix of the PCI class of GPUs."""

DRIVER_TIMEOUT = 20.0
"""Timeout in seconds: waking eight GPUs takes several."""


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver."""

    version: str = ""
    """Its version; empty if no driver responds."""
    cuda: tuple[int, int] = (0, 0)
    """The newest CUDA version that it supports, e.g. ``(12, 8)``; ``(0, 0)`` if unknown."""
    gpus: tuple[Device, ...] = ()
    """Its GPUs, regardless of ``CUDA_VISIBLE_DEVICES``."""
    memory_shares: tuple[tuple[str, float], ...] = ()
    """Pairs of a GPU's id and the share of its memory in use."""
    problem: str = ""
    """Why it finds no GPU."""
    timed_out: bool = False
    """Whether it did not respond in time."""
    settings: tuple[GpuSettings, ...] = ()
    """The settings of its GPUs."""


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
        settings = tuple(map(_read_settings, inventory.devices))
        return Driver(version, cuda, inventory.devices, tuple(shares), problem, settings=settings)
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


def _read_settings(gpu: Device) -> GpuSettings:
    """Read the settings of a GPU; call it while the library is open."""
    import pynvml as nvml

    def read(function: str, *arguments: Any) -> Any:
        with contextlib.suppress(nvml.NVMLError, AttributeError):  # old drivers and old bindings lack some
            return getattr(nvml, f"nvmlDeviceGet{function}")(*arguments)
        return None

    if (handle := read("HandleByIndex", int(gpu.id.partition(":")[2]))) is None:
        return GpuSettings(gpu.id)
    persistence, (ecc, ecc_next) = read("PersistenceMode", handle), read("EccMode", handle) or (None, None)
    mig, rows = read("MigMode", handle), read("RemappedRows", handle)
    limit, default = read("EnforcedPowerLimit", handle), read("PowerManagementDefaultLimit", handle)
    links = [read("NvLinkState", handle, link) for link in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", 0))]
    return GpuSettings(
        gpu.id,
        read("ComputeMode", handle),
        None if persistence is None else bool(persistence),
        None if mig is None else bool(mig[0]),
        max(0, len(gpu.uuids) - 1),
        None if limit is None else limit / 1000,
        None if default is None else default / 1000,
        None if ecc is None else ecc != ecc_next,
        None if rows is None else bool(rows[2]),
        None if rows is None else bool(rows[3]),
        _recovery(nvml, read("FieldValues", handle, [_RECOVERY])),
        links.count(1),
    )


_RECOVERY = 230
"""NVML's field ``NVML_FI_DEV_GET_GPU_RECOVERY_ACTION``."""


def _recovery(nvml: Any, values: Any) -> int | None:
    """The driver's answer about recovery; ``None`` if it has none."""
    if not values or values[0].nvmlReturn != nvml.NVML_SUCCESS:
        return None
    return int(values[0].value.uiVal)


@dataclass(frozen=True, slots=True)
class Machine:
    """The inputs of the checks."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """Environment variables."""
    root: Path = Path("/")
    """Parent directory of ``sys``, ``dev`` and ``proc``."""
    temporary: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    """The directory of temporary files."""
    home: Path = field(default_factory=home)
    """The program's directory, with the runs."""
    python: Interpreter = field(default_factory=Interpreter.here)
    """The interpreter."""
    version: Callable[[str], str] = installed_version
    """Returns the version of a distribution; empty if it is not installed."""
    requirements: Callable[[str], Sequence[str]] = _requirements_of
    """Returns the requirements of a distribution."""
    driver: Callable[[], Driver] = field(default_factory=lambda: once(query_driver))
    """Queries the NVIDIA driver; cached."""
    tensorflow: Callable[[], TensorFlowDevices] = field(default_factory=lambda: once(probe_tensorflow))
    """Probes TensorFlow in a separate process; cached."""
    computing: Callable[[], TensorFlowDevices] = field(default_factory=lambda: once(probe_devices))
    """Probes it, and lets its devices compute; cached."""
    xla_flags: Callable[[], str | None] = field(default_factory=lambda: once(xla_flags_problem))
    """Tries the user's flags for XLA in a separate process, and returns why they end it; cached."""
    arrow: Callable[[], str] = field(default_factory=lambda: once(problem_beside_tensorflow))
    """Loads PyArrow beside TensorFlow in a separate process, and returns why that fails; cached."""

    @property
    def processor(self) -> str:
        """The kind of processor, such as ``x86_64``."""
        return self.python.system.rpartition(" ")[2]

    @property
    def in_wsl(self) -> bool:
        """Whether this is WSL2, where Windows has the driver."""
        return (self.root / "dev/dxg").exists()

    @property
    def in_colab(self) -> bool:
        """Whether this is a runtime of Google Colab."""
        return "COLAB_RELEASE_TAG" in self.environment

    @property
    def is_jetson(self) -> bool:
        """Whether this is a Jetson, whose GPU is on no PCI bus."""
        return (self.root / "etc/nv_tegra_release").exists()

    @property
    def is_mac(self) -> bool:
        """Whether the system is macOS."""
        return self.python.system.startswith("Darwin")

    @property
    def pci_gpus(self) -> list[Path]:
        """The directories below ``/sys`` of NVIDIA GPUs on the PCI bus, with or without a driver."""
        try:
            functions = sorted((self.root / "sys/bus/pci/devices").iterdir())
        except OSError:
            return []
        return list(filter(_is_gpu, functions))

    @property
    def in_container(self) -> bool:
        """Whether this is a container, to which not all of the host's devices may be passed."""
        return any((self.root / marker).exists() for marker in (".dockerenv", "run/.containerenv"))


def _is_gpu(function: Path) -> bool:
    vendor, kind = read_word(function / "vendor"), read_word(function / "class")
    return vendor.lower() == NVIDIA and kind.lower().startswith(DISPLAY)


def parse_version(text: str) -> Version:
    """Parse a version; 0 for a text that is not a version by PEP 440."""
    try:
        return Version(text)
    except InvalidVersion:
        return Version("0")
