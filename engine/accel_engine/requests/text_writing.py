"""Lets a run's language model write text, in a separate engine process."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from accel_engine.process.model_query import ModelQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingOptions:
    """How a language model writes.

    Attributes:
        prompt: The text to continue.
        tokens: Tokens to write.
        temperature: What the logarithms of probabilities are divided by; 0 takes the most probable token.
        seed: Seed of the draws.
        checkpoint: ``best``, ``last`` or a step; ``auto`` is ``best`` for a run that restores its best weights.
    """

    prompt: str
    tokens: int = 200
    temperature: float = 0.8
    seed: int = 0
    checkpoint: str = "auto"


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text that a model has written.

    Attributes:
        name: The run's id.
        step: The step of the checkpoint whose weights it has.
        text: The text, without the prompt.
        tokens: Number of its tokens.
        notes: Notes for the user.
    """

    name: str
    step: int
    text: str
    tokens: int
    notes: tuple[str, ...]


class WritingQuery(ModelQuery):
    """A request to let the model of a run continue a prompt, on the CPU.

    Args:
        directory: The run's directory.
        options: The prompt, and how to write.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run has no checkpoint.
    """

    def __init__(self, directory: Path, options: WritingOptions) -> None:
        super().__init__("--predict", directory, asdict(options))

    def written(self, on_text: Callable[[str], object] = lambda _: None) -> WrittenText:
        """Wait for the text, at least as long as TensorFlow takes to import.

        Args:
            on_text: Called with each part of the text as it is written.

        Raises:
            RunError: The run's model writes no text; why.
        """
        reply = self.answer(on_text=on_text)
        return WrittenText(reply["name"], reply["step"], reply["written"], reply["tokens"], tuple(reply["notes"]))


def write_text(
    directory: Path, options: WritingOptions, on_text: Callable[[str], object] = lambda _: None
) -> WrittenText:
    """Let the model of a run continue a prompt, on the CPU: see :class:`WritingQuery`."""
    with WritingQuery(directory, options) as query:
        return query.written(on_text)
