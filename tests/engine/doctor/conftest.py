"""A machine to put together as a test likes: its packages, its variables, its files, its driver, its TensorFlow."""

import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from accel_engine.devices.device_types import Device
from accel_engine.doctor.check_inputs import Driver, Machine
from accel_engine.doctor.python_checks import Interpreter
from accel_engine.doctor.tf_probe import TensorFlowDevices

Make = Callable[..., Machine]

GIB = 2**30


def gpu(index: int = 0, name: str = "NVIDIA H100 80GB HBM3", **values: Any) -> Device:
    """A GPU as the driver describes it."""
    return Device(f"gpu:{index}", "gpu", name, **{"memory": 80 * GIB, "address": f"0000:{index:02x}:00.0", **values})


def pci(root: Path, address: str, vendor: str, **words: str) -> Path:
    """Put a function on the PCI bus."""
    function = root / "sys/bus/pci/devices" / address
    function.mkdir(parents=True)
    for name, word in {"vendor": vendor, **words}.items():
        (function / name).write_text(f"{word}\n")
    return function


def make_machine(
    folder: Path,
    packages: dict[str, str] | None = None,
    requirements: Sequence[str] = (),
    driver: Driver | None = None,
    tensorflow: TensorFlowDevices | None = None,
    computing: TensorFlowDevices | None = None,
    xla_flags: str | None = "",
    arrow: str = "",
    **values: Any,
) -> Machine:
    """A machine without any accelerator, with the CPU build installed, but for what is given; its files in a folder."""
    installed = {"tensorflow-cpu": "2.21.0", "keras": "3.15.1", "pyarrow": "24.0.0"} if packages is None else packages
    for place in ("root", "temporary"):
        (folder / place).mkdir(exist_ok=True)
    given = {
        "environment": {},
        "root": folder / "root",
        "temporary": folder / "temporary",
        "home": folder / "home",
        "python": Interpreter((3, 12, 4)),
        **values,
    }
    return Machine(
        **given,
        version=lambda name: installed.get(name, ""),
        requirements=lambda _: requirements,
        driver=lambda: driver or Driver(problem="no NVIDIA driver"),
        tensorflow=lambda: (
            tensorflow or TensorFlowDevices("2.21.0", "/site/tensorflow/__init__.py", "3.15.1", seconds=2.5)
        ),
        computing=lambda: computing or TensorFlowDevices(),
        xla_flags=lambda: xla_flags,
        arrow=lambda: arrow,
    )


@pytest.fixture
def machine(tmp_path: Path) -> Make:
    """A machine without any accelerator, with the CPU build installed, but for what is given."""
    return partial(make_machine, tmp_path)


@pytest.fixture(scope="session")
def pyproject() -> dict[str, Any]:
    """What the project says of itself."""
    return tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
