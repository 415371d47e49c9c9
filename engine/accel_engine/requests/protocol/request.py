"""The base of all requests to engine processes, the requests by name, and the messages that several have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from accel_engine import requests
from accel_engine.errors import UsageError

ResultT = TypeVar("ResultT", covariant=True)

ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "-1", "TPU_LOAD_LIBRARY": "0"}
"""Environment variables that hide accelerators, which may be in use by training."""

WITHOUT_TPU = {"TPU_LOAD_LIBRARY": "0"}
"""Environment variables that hide TPUs, which only training uses."""

Send: TypeAlias = Callable[[Any], object]
"""Sends a part of an answer."""


@dataclass(frozen=True, slots=True)
class ExamplesDone:
    """A part of an answer: how far it is."""

    done: int
    """Number of examples done."""
    of: int
    """Number of all; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class Doing:
    """The work of an engine process on a request, before its result."""

    what: str
    """In words, such as ``opening the model``."""


@dataclass(frozen=True, slots=True)
class KeptState:
    """Whether a kept process may answer further requests; it comes before each result, or problem."""

    is_usable: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is no answer."""

    text: str
    """A message for the user."""
    out_of_memory: bool = False
    """Whether memory ran out, as far as is known; only trials tell it."""


class EngineRequest(Generic[ResultT]):
    """A request to an engine process; a frozen dataclass in a module of :mod:`accel_engine.requests`.

    The engine calls its function with the request and a :data:`Send`; what that returns is the result. Requests, parts
    and results are dataclasses. Their fields are numbers, also NaN and infinite ones, texts, bytes, paths, plans and
    other dataclasses, in tuples and mappings or alone; a union may have one dataclass, path or plan.

    Arrays are passed on as files in the folder of a :class:`FolderRequest`.
    """

    __slots__ = ()

    function: ClassVar[str]
    """What answers it, as ``module:name``; only the engine imports it."""
    result: ClassVar[type]
    """The type of the result, which no part has."""
    parts: ClassVar[tuple[type, ...]] = (ExamplesDone,)
    """The types of what may come before the result."""
    asks: ClassVar[tuple[type, ...]] = ()
    """The types of what may follow the request, if it begins a conversation. Its function also gets an iterator over
    these, which ends with the process."""
    is_batch: ClassVar[bool] = True
    """Whether its process leaves other programs the CPU first; not where it measures what a server reaches."""
    needs_tensorflow: ClassVar[bool] = True
    """Whether TensorFlow is imported before its function is called."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Additional environment variables of its process; by default, accelerators are hidden."""
        return ON_THE_CPU

    def check(self) -> None:
        """Check the request before a process is started.

        Raises:
            AccelError: The request cannot be answered.
        """


@dataclass(frozen=True, slots=True)
class ComputeDevice:
    """The device that a request computes on.

    Attributes:
        id: ``cpu``, or the id of a GPU such as ``gpu:0``.
        name: The GPU's product name; empty for the CPU, and for a GPU that only TensorFlow finds, until it does.
        choice: Environment variables that show only this GPU to TensorFlow; empty for the CPU.
        is_required: Whether the user chose it, so that no other device takes its place.
        why: Why ``auto`` uses none of the machine's GPUs; empty if it has none, or one is used.
    """

    id: str = "cpu"
    name: str = ""
    choice: Mapping[str, str] = field(default_factory=dict)
    is_required: bool = False
    why: str = ""

    @property
    def is_gpu(self) -> bool:
        """Whether the device is a GPU, and not the CPU."""
        return self.id != "cpu"

    @property
    def is_notable(self) -> bool:
        """Whether a user should know it: not the CPU of a machine without GPUs, or the CPU that the user chose."""
        return self.is_gpu or bool(self.why)

    @property
    def text(self) -> str:
        """Where the request computes, such as ``on gpu:0 (NVIDIA H200)``."""
        if self.is_gpu:
            return f"on {self.id} ({self.name})" if self.name else f"on {self.id}"
        return f"on the CPU ({self.why})" if self.why else "on the CPU"

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of its process. GPU memory grows on demand, whatever the user's variables say."""
        return {**WITHOUT_TPU, **self.choice, "TF_FORCE_GPU_ALLOW_GROWTH": "true"} if self.is_gpu else ON_THE_CPU


class DeviceRequest:
    """A request on trained models that computes on a GPU or the CPU; its result has an attribute ``device``, too.

    Attributes:
        device: The device, which :func:`accel_engine.run_queue.request_device.placed` finds.
    """

    __slots__ = ()

    device: ComputeDevice

    @property
    def wanted_device(self) -> str:
        """The user's choice: ``auto``, ``cpu`` or a GPU such as ``gpu:0``; ``auto`` where there is no choice."""
        return "auto"

    @property
    def model_paths(self) -> tuple[Path, ...]:
        """The directories of runs, and the files of models, whose weights it loads at the same time."""
        raise NotImplementedError

    @property
    def environment(self) -> Mapping[str, str]:
        """See :attr:`EngineRequest.environment`."""
        return self.device.environment


@dataclass(frozen=True, slots=True)
class FolderRequest(EngineRequest[ResultT]):
    """A request that needs a folder for files."""

    folder: Path | None = field(default=None, kw_only=True)
    """Where the folder is made; ``None`` for the directory of temporary files. The request that the engine gets has the
    folder itself."""


def unheard(part: object) -> None:
    """Takes the parts of an answer that nobody waits for."""


def tells(send: Send) -> Callable[[str], object]:
    """Sends what is being done, as :class:`Doing`."""
    return lambda what: send(Doing(what))


def reports(send: Send) -> Callable[[int, int], None]:
    """Sends the number of examples done, and of all, as :class:`ExamplesDone`."""

    def report(done: int, of: int) -> None:
        send(ExamplesDone(done, of))

    return report


def request_names() -> tuple[str, ...]:
    """The names of all requests, without importing them."""
    import pkgutil  # which a program that asks does not need

    return tuple(module.name for module in pkgutil.iter_modules(requests.__path__) if not module.ispkg)


def find_request(name: str) -> type[EngineRequest[Any]]:
    """The request with this name.

    Raises:
        UsageError: There is no request of this name.
    """
    if name not in request_names():
        raise UsageError(f"there is no request {name!r}; the requests are {', '.join(request_names())}")
    return import_module(f"{requests.__name__}.{name}").REQUEST


def request_name(request: type[EngineRequest[Any]]) -> str:
    """The name of a request: its module's name."""
    return request.__module__.rpartition(".")[2]


def request_function(request: type[EngineRequest[Any]]) -> Callable[..., Any]:
    """Import what answers a request; in an engine process, as this may import TensorFlow."""
    module, _, name = request.function.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True, slots=True)
class EngineReady:
    """A warm engine has imported TensorFlow, unless that would claim an accelerator."""

    versions: Mapping[str, str]
    """Versions of packages, by name."""


@dataclass(frozen=True, slots=True)
class RunHandedOver:
    """An engine gets a run to train; it sends nothing more."""

    directory: Path
    """The run's directory."""
