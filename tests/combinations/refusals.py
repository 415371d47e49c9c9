"""The combinations that the program refuses deliberately."""

import fnmatch
import re
from dataclasses import dataclass
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "refusals.md"


@dataclass(frozen=True)
class Refusal:
    """A combination that is refused.

    Attributes:
        rows: Pattern of the rows' ids, as of a shell.
        commands: Pattern of the commands.
        says: What the program says, as a regular expression.
        title: How its line in :data:`DOCUMENT` begins.
        loads: Whether an engine has to load the model or the data to know; nothing is trained or written then, either.
    """

    rows: str
    commands: str
    says: str
    title: str
    loads: bool = False

    def fits(self, row: str, command: str) -> bool:
        """Whether a cell is refused for this reason."""
        return any(fnmatch.fnmatchcase(row, each) for each in self.rows.split()) and any(
            fnmatch.fnmatchcase(command, each) for each in self.commands.split()
        )

    def explains(self, reason: str) -> bool:
        """Whether this is what the program said."""
        return re.search(self.says, reason) is not None


REFUSALS: tuple[Refusal, ...] = (
    Refusal("field:tpu", "*", "requires strategy", "`--tpu` without `--strategy tpu`"),
    Refusal("strategy:tpu", "*", "needs a TPU in this machine", "`--strategy tpu` without a TPU"),
    Refusal("choice:reduction=nccl", "*", "requires GPUs", "`--reduction nccl` without GPUs"),
    Refusal(
        "field:memory_growth field:memory_limit",
        "*",
        "only for GPUs; a CPU trains",
        "`--memory-growth off` or `--memory-limit` without GPUs",
    ),
    Refusal(
        "field:steps_per_epoch application:Inception* application:Xception",
        "find-rate find-rate-of-run",
        r"too few: the plan takes \d steps in all",
        "Fewer than 20 steps in all",
    ),
    Refusal(
        "field:validation_steps data:stream",
        "find-batch-size",
        "the data is a stream with batches of 8 examples: only its own code can change them",
        "Data that comes in batches (a",
        loads=True,
    ),
    Refusal(
        "task:compiled-tuple task:compiled-triplets",
        "predict",
        "the model's inputs have no names by which arrays of a file could be chosen",
        "Several inputs without names",
        loads=True,
    ),
    Refusal(
        "task:compiled-own_step",
        "evaluate diagnose",
        "the model has a custom train_step, so its outputs cannot be interpreted",
        "A custom `train_step`",
        loads=True,
    ),
    Refusal(
        "task:compiled-own_step task:compiled-triplets task:compiled-added_loss",
        "export-keras",
        r"class \w+ is not known: decorate it with keras.saving.register_keras_serializable",
        "A model with a class, its own or a layer's, that is not registered",
        loads=True,
    ),
    Refusal(
        "field:unsafe_load",
        "export-keras",
        "Keras cannot load model.keras: .* is a Python lambda",
        "A `Lambda` layer around a Python lambda",
        loads=True,
    ),
    Refusal(
        "task:compiled-masked",
        "export-tflite-int8",
        "LiteRT cannot run the model",
        "A model of masked sequences",
        loads=True,
    ),
    Refusal(
        "strategy:parameter-server field:local_workers field:isolate_workers",
        "find-rate-of-run",
        "trains in several processes, each with its own checkpoints",
        "A run of several processes",
    ),
    Refusal(
        "strategy:parameter-server strategy:multi-worker field:local_workers field:isolate_workers",
        "profile",
        "a run of several processes is not profiled",
        "A run of several processes, or such",
    ),
)


def refusal_of(row: str, command: str) -> Refusal | None:
    """The refusal of a cell; ``None`` for one that passes."""
    return next((each for each in REFUSALS if each.fits(row, command)), None)
