"""Names the trained models that engine processes are asked about."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.run import RunReader
from accel_engine.run.directory.run_paths import latest_checkpoint


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A trained model, of a run or of a file; it has one of the two fields.

    Attributes:
        directory: The run's directory.
        plan: A plan with the file as its model, and with data.
    """

    directory: Path | None = None
    plan: Plan | None = None

    @classmethod
    def of(cls, model: Path | Plan) -> Self:
        """The reference to the model of a run's directory, or of a plan."""
        return cls(plan=model) if isinstance(model, Plan) else cls(model)

    @property
    def model(self) -> Path | Plan:
        """The run's directory, or the plan."""
        return self.plan or self.directory or Path()

    @property
    def path(self) -> Path:
        """The run's directory, or the file."""
        return Path(self.plan.model) if self.plan else self.directory or Path()

    def check(self) -> None:
        """Raise if it is of a run without a checkpoint.

        Raises:
            RunError: It is; why.
        """
        if self.directory:
            check_checkpoint(self.directory)


def check_checkpoint(directory: Path) -> None:
    """Raise if a run has no checkpoint.

    Raises:
        RunError: It has none; why.
    """
    with closing(RunReader(directory)) as reader:
        info = reader.info()
    if not info.has_engine:
        raise RunError(f"run {directory.name} was {info.made} and has no checkpoints")
    if not latest_checkpoint(directory):
        raise RunError(f"run {directory.name} has no checkpoint yet: the first one is written after an epoch")
