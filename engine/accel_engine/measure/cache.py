"""Remembers what was measured on this machine, by everything that it depends on; in JSON files of the program's folder.

What could not be measured is never remembered: a library that is missing today may be there tomorrow.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec

from accel_engine import clock
from accel_engine.devices.host_probe import processors
from accel_engine.devices.installation import DISTRIBUTIONS, installed_versions
from accel_engine.errors import RunError
from accel_engine.files import replacing
from accel_engine.json_values import convert_or_none, parse_object, to_plain
from accel_engine.plan import Plan, affecting
from accel_engine.run.directory.run_paths import home, make_private
from accel_engine.version import __version__

MAX_AGE_SECONDS = 7 * 24 * 3600
"""How long a rate of training counts: other programs and settings of the machine change what is fast."""

VARIABLES = (
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "TF_CUDNN_USE_AUTOTUNE",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_GPU_ALLOCATOR",
    "TF_GPU_THREAD_MODE",
    "TF_NUM_INTEROP_THREADS",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
)
"""Variables of the environment that change how fast TensorFlow is."""

XLA_CHOICES = "--xla_gpu_per_fusion_autotune_cache_dir="
"""The option of ``XLA_FLAGS`` that engines add, see :mod:`accel_engine.engine_main.tensorflow_import`: it changes how
long XLA compiles, and no rate."""

_DRIVER = "proc/driver/nvidia/version"

Rate: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=sys.float_info.max)]
"""A rate that was measured."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dated(Generic[T]):
    """A value, and when it was measured."""

    value: T
    measured_at: float
    """Seconds since the Unix epoch."""


class Cache(Generic[T]):
    """Values of a kind.

    Args:
        name: Of its file.
        kind: Their type.
        max_age: Seconds after which a value does not count any more.
    """

    def __init__(self, name: str, kind: type[T], max_age: float = MAX_AGE_SECONDS) -> None:
        self._file, self._kind, self._max_age = f"{name}.json", kind, max_age

    @property
    def path(self) -> Path:
        """The file, which may not exist yet."""
        return home() / self._file

    def all(self) -> dict[str, Dated[T]]:
        """All values by key, without those that are too old or damaged."""
        try:
            stored = parse_object(self.path.read_text())
        except (OSError, ValueError):
            return {}
        found = {key: convert_or_none(value, Dated[Any]) for key, value in stored.items()}
        recent = {key: each for key, each in found.items() if each and self._is_recent(each.measured_at)}
        values = {key: convert_or_none(each.value, self._kind) for key, each in recent.items()}
        return {key: Dated(value, recent[key].measured_at) for key, value in values.items() if value is not None}

    def load(self, key: str) -> T | None:
        """The value of a key; ``None`` if it was not measured, or too long ago."""
        found = self.all().get(key)
        return found.value if found else None

    def save(self, values: Mapping[str, T], forgotten: Iterable[str] = ()) -> None:
        """Save values by key; write errors are ignored, as they can be measured again.

        Args:
            values: The values.
            forgotten: Keys whose values do not count any more.
        """
        now = clock.now()
        kept = {key: value for key, value in self.all().items() if key not in set(forgotten)}
        with suppress(OSError, RunError):
            make_private(home())
            with replacing(self.path) as temporary:
                new = {key: Dated(value, now) for key, value in values.items()}
                temporary.write_text(json.dumps(to_plain({**kept, **new}), indent=1))

    def _is_recent(self, measured_at: float) -> bool:
        return 0 <= clock.now() - measured_at < self._max_age


def key_of(devices: Iterable[str], fields: Mapping[str, Any] | None = None, **more: Any) -> str:
    """Everything that a measurement depends on, as JSON.

    Args:
        devices: Product names of the devices.
        fields: Fields of the plan; those without an effect on speed are left out.
        more: What else it depends on.
    """
    defaults = Plan().to_mapping()
    differing = {
        name: value for name, value in (fields or {}).items() if name in affecting("speed") and value != defaults[name]
    }
    return json.dumps({"plan": differing, "machine": machine(devices), **more}, sort_keys=True)


def machine(devices: Iterable[str]) -> list[Any]:
    """The facts on which all measurements depend: devices, versions of programs and drivers, the environment."""
    return [
        list(devices),
        processors(),
        __version__,
        installed_versions(*DISTRIBUTIONS, "keras"),
        driver(),
        {name: value for name in VARIABLES if (value := of_user(name))},
    ]


def driver(root: Path = Path("/")) -> str:
    """The version of the NVIDIA driver; empty without one."""
    with suppress(OSError):
        return (root / _DRIVER).read_text().partition("\n")[0]
    return ""


def of_user(name: str) -> str:
    """A variable of the environment, without what engines add to it."""
    return " ".join(word for word in os.environ.get(name, "").split() if not word.startswith(XLA_CHOICES))
