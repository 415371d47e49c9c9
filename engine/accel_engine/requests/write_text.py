"""Asks a run's language model to write text."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from accel_engine.plan.options import OptionSpec, option
from accel_engine.requests.protocol.model_reference import CHECKPOINT, DEVICE, RunRequest
from accel_engine.requests.protocol.request import ComputeDevice, EngineRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingOptions:
    """How a language model writes.

    Attributes:
        prompt: The text to continue.
        tokens: Tokens to write.
        temperature: The divisor of the logarithms of probabilities; 0 takes the most probable token.
        seed: Seed of the draws.
        checkpoint: ``best``, ``last`` or a step; ``auto`` is ``best`` for a run that restores its best weights.
        device: ``auto``, ``cpu`` or a GPU such as ``gpu:0``.
    """

    prompt: str = option(
        "", OptionSpec("Let a language model continue TEXT.", str, hint="a text to continue", read=str)
    )
    tokens: int = option(200, OptionSpec("Tokens to write.", int, minimum=1, maximum=1_000_000))
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
    seed: int = option(0, OptionSpec("Seed of what is written.", int, minimum=0))
    checkpoint: str = option("auto", CHECKPOINT)
    device: str = option("auto", DEVICE)


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text that a model has written.

    Attributes:
        name: The run's id.
        step: The step of the checkpoint whose weights it has.
        text: The text, without the prompt.
        tokens: Number of its tokens.
        notes: Notes for the user.
        device: The device that computed it.
    """

    name: str
    step: int
    text: str
    tokens: int
    notes: tuple[str, ...]
    device: ComputeDevice = field(default_factory=ComputeDevice)


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A part of a text that is being written."""

    text: str


@dataclass(frozen=True, slots=True)
class WritingRequest(RunRequest, EngineRequest[WrittenText]):
    """A request to let the model of a run continue a prompt.

    Attributes:
        directory: The run's directory.
        options: The prompt, and how to write.
        device: See :class:`DeviceRequest`.
    """

    function: ClassVar = "accel_engine.trained.prediction.writing:continue_text"
    result: ClassVar = WrittenText
    parts: ClassVar = (WrittenPart,)

    directory: Path
    options: WritingOptions
    device: ComputeDevice = field(default_factory=ComputeDevice, kw_only=True)

    @property
    def wanted_device(self) -> str:
        """See :attr:`DeviceRequest.wanted_device`."""
        return self.options.device


REQUEST = WritingRequest
