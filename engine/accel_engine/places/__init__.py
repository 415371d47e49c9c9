"""Where a run is started other than here: by Slurm, Kubernetes, Ray, SkyPilot, xpk or over SSH; without TensorFlow.

A :class:`~accel_engine.places.place.Place` asks what devices there are, writes readable files, gives them to its engine
and says what that does with them. There is no scheduler here: the place's engine is the scheduler.

This module has only what a command needs before it imports the rest.
"""

import re
from dataclasses import dataclass

from accel_engine.deploy_folder.folder_options import image_name, node_labels
from accel_engine.errors import UsageError
from accel_engine.plan.interval import parse_duration
from accel_engine.plan.options import OptionSpec, default_of, option, specs_of
from accel_engine.text import suggestion

HERE = "here"
"""The name of this machine as a place."""

HOST = "host"
"""The kind of the place that is one of the user's hosts; its detail is the host's name."""

ANY = "any"
"""The name that stands for the host whose own queue could start a run first."""

FORMS = {
    "slurm": "slurm[:PARTITION]",
    "kubernetes": "kubernetes[:CONTEXT/NAMESPACE]",
    "ray": "ray[:ADDRESS]",
    "hosts": "hosts:HOST,HOST,...",
    "skypilot": "skypilot[:GPU]",
    "xpk": "xpk:CLUSTER/DEVICE",
}
"""How each kind of place is written."""

_CORES = frozenset({"nodes", "gpus", "write", "cpus", "host_memory"})

TAKES = {
    "slurm": _CORES | {"walltime", "place_options"},
    "kubernetes": _CORES | {"image", "volume", "local_queue", "node_selector", "tpu_topology"},
    "ray": _CORES,
    "hosts": frozenset({"nodes", "gpus", "write"}),
    "skypilot": _CORES | {"image", "volume"},
    "xpk": frozenset({"nodes", "image", "volume", "write"}),
}
"""The fields of a :class:`PlaceRequest` that each kind of place has."""

_SIZE = re.compile(r"(\d+)\s*([MGT])(?:i?B?)?", re.IGNORECASE | re.ASCII)
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_TPU = re.compile(r"tpu[a-z0-9-]*:\d+x\d+(x\d+)?", re.ASCII)
_MIB = {"M": 1, "G": 1 << 10, "T": 1 << 20}


def _seconds(text: str) -> float | None:
    return parse_duration("walltime", text) if text.strip() else None


def _mib(text: str) -> int | None:
    if not text.strip():
        return None
    found = _SIZE.fullmatch(text.strip())
    if not found or not int(found[1]):
        raise UsageError(f"{text!r} is not a size: give one such as 16G or 800M")
    return int(found[1]) * _MIB[found[2].upper()]


def _kubernetes_name(text: str) -> str:
    if text and not _NAME.fullmatch(text):
        raise UsageError(f"{text!r} is not a name in Kubernetes: use lower-case letters, digits and -")
    return text


def _volume(text: str) -> str:
    claim, colon, path = text.partition(":")
    _kubernetes_name(claim)
    if colon and (not path.startswith("/") or ".." in path.split("/")):
        raise UsageError(f"{path!r} is not an absolute path: give CLAIM:/PATH")
    return text


def _tpu(text: str) -> str:
    if text and not _TPU.fullmatch(text):
        raise UsageError(f"{text!r} is not a TPU of GKE: give one such as tpu-v5-lite-podslice:2x4")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRequest:
    """The request of a run to its place."""

    nodes: int | None = option(
        None, OptionSpec("With --on: machines, each with a worker of multi-worker.", int, minimum=1, metavar="N")
    )
    gpus: int | None = option(
        None, OptionSpec("With --on: GPUs of each machine; by default as the place says.", int, minimum=0, metavar="N")
    )
    cpus: int | None = option(
        None, OptionSpec("With --on: processor cores of each machine.", int, minimum=1, metavar="N")
    )
    host_memory: int | None = option(
        None, OptionSpec("With --on: memory of each machine, such as 32G.", int, metavar="SIZE", read=_mib, unit="M")
    )
    """MiB."""
    walltime: float | None = option(
        None,
        OptionSpec(
            "With --on: time of a job, such as 2h; the run continues in another.",
            float,
            metavar="TIME",
            read=_seconds,
            unit="s",
        ),
    )
    """Seconds."""
    place_options: tuple[str, ...] = option(
        (),
        OptionSpec(
            "With --on slurm: a further option of sbatch, such as --account=NAME; repeatable.",
            tuple,
            flags=("--place-option",),
            metavar="OPTION",
            repeats=True,
        ),
    )
    image: str = option(
        "",
        OptionSpec(
            "With --on kubernetes, skypilot or xpk: image with accel-tui and TensorFlow.",
            str,
            metavar="IMAGE",
            read=image_name,
        ),
    )
    volume: str = option(
        "",
        OptionSpec(
            "With --on kubernetes, skypilot or xpk: volume claim for runs, and where it is mounted.",
            str,
            metavar="CLAIM[:PATH]",
            read=_volume,
        ),
    )
    local_queue: str = option(
        "", OptionSpec("With --on kubernetes: Kueue's local queue.", str, metavar="NAME", read=_kubernetes_name)
    )
    node_selector: tuple[str, ...] = option(
        (),
        OptionSpec("With --on kubernetes: labels of the nodes.", tuple, metavar="NAME=VALUE,...", read=node_labels),
    )
    tpu_topology: str = option(
        "",
        OptionSpec(
            "With --on kubernetes: TPU of GKE, such as tpu-v5-lite-podslice:2x4.",
            str,
            metavar="TYPE:TOPOLOGY",
            read=_tpu,
        ),
    )
    write: str = option("", OptionSpec("With --on: only write the place's files.", str, metavar="FOLDER", suffixes=()))

    def check_is_empty(self, place: object) -> None:
        """Check that nothing is asked of a place that only a cluster can give.

        Raises:
            UsageError: Something is.
        """
        if self != PlaceRequest():
            raise UsageError(f"{place} is not a cluster: machines, GPUs and so on are for places such as slurm")

    def check_is_taken(self, place: "PlaceName") -> None:
        """Check that a place has all that is asked of it.

        Raises:
            UsageError: It does not have an option.
        """
        flags = {name: spec.flag(name) for name, spec in specs_of(PlaceRequest).items()}
        for name, flag in flags.items():
            if name not in TAKES[place.kind] and getattr(self, name) != default_of(PlaceRequest, name):
                known = ", ".join(flags[each] for each in flags if each in TAKES[place.kind])
                raise UsageError(f"{place} has no {flag}: it has {known}")


@dataclass(frozen=True, slots=True)
class PlaceName:
    """The name of a place."""

    kind: str
    """The word before the colon."""
    detail: str = ""
    """What stands after it; empty for the place's own choice."""

    def __str__(self) -> str:
        if self.kind == HOST:
            return self.detail
        return f"{self.kind}:{self.detail}" if self.detail else self.kind


def parse_place(text: str) -> PlaceName | None:
    """Parse the name of a place: a host, ``any``, ``slurm``, ``slurm:PARTITION`` and so on.

    Returns:
        ``None`` for this machine.

    Raises:
        UsageError: There is no such kind of place.
    """
    kind, colon, detail = text.strip().partition(":")
    if kind == HERE and not colon:
        return None
    if kind not in FORMS:
        from accel_engine.run.directory.run_paths import host_function  # which other places do not need

        hosts = [host.name for host in host_function("host_list:read_hosts")()]
        if not colon and (kind in hosts or kind == ANY):
            return PlaceName(HOST, kind)
        near = suggestion(kind, (HERE, ANY, *FORMS, *hosts))
        forms = ", ".join((HERE, "HOST", ANY, *FORMS.values()))
        raise UsageError(f"there is no place {text.strip()!r}; {near} (places: {forms})")
    if (colon or "[" not in FORMS[kind]) and not detail.strip():
        raise UsageError(f"the place {text.strip()!r} lacks what it names: {FORMS[kind]}")
    return PlaceName(kind, detail.strip())
