"""Asks a run's language model to write text."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from accel_engine.plan.options import OptionSpec, option
from accel_engine.requests.protocol.model_reference import CHECKPOINT, DEVICE, RunRequest
from accel_engine.requests.protocol.request import ComputeDevice, EngineRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingOptions:
    """How a language model writes."""

    prompt: str = option(
        "", OptionSpec("Let a language model continue TEXT.", str, hint="a text to continue", read=str)
    )
    """The text to continue."""
    tokens: int = option(200, OptionSpec("Tokens to write.", int, minimum=1, maximum=1_000_000))
    """Tokens to write."""
    temperature: float = option(
        0.8,
        OptionSpec(
            "Randomness of what is written; 0 takes the most probable token.",
            float,
            minimum=0,
            maximum=100,
            metavar="T",
        ),
    )
    """The divisor of the logarithms of probabilities; 0 takes the most probable token."""
    seed: int = option(0, OptionSpec("Seed of what is written.", int, minimum=0))
    """Seed of the draws."""
    checkpoint: str = option("auto", CHECKPOINT)
    """``best``, ``last`` or a step; ``auto`` is ``best`` for a run that restores its best weights."""
    device: str = option("auto", DEVICE)
    """``auto``, ``cpu`` or a GPU such as ``gpu:0``."""


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text that a model has written."""

    name: str
    """The run's id."""
    step: int
    """The step of the checkpoint whose weights it has."""
    text: str
    """The text, without the prompt."""
    tokens: int
    """Number of its tokens."""
    notes: tuple[str, ...]
    """Notes for the user."""
    device: ComputeDevice = field(default_factory=ComputeDevice)
    """The device that computed it."""


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A part of a text that is being written."""

    text: str


@dataclass(frozen=True, slots=True)
class WritingRequest(RunRequest, EngineRequest[WrittenText]):
    """A request to let the model of a run continue a prompt."""

    function: ClassVar = "accel_engine.trained.prediction.writing:continue_text"
    result: ClassVar = WrittenText
    parts: ClassVar = (WrittenPart,)

    directory: Path
    """The run's directory."""
    options: WritingOptions
    """The prompt, and how to write."""
    device: ComputeDevice = field(default_factory=ComputeDevice, kw_only=True)
    """See :class:`DeviceRequest`."""

    @property
    def wanted_device(self) -> str:
        """See :attr:`DeviceRequest.wanted_device`."""
        return self.options.device


REQUEST = WritingRequest
