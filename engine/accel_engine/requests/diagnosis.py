"""Reports on the examples that a run was evaluated on, in a separate engine process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from accel_engine.data.data_options import no_progress
from accel_engine.errors import RunError
from accel_engine.process.folder_query import FolderQuery
from accel_engine.process.model_query import check_checkpoint
from accel_engine.requests.evaluation import EvaluationOptions
from accel_engine.run.diagnostics import ValidationReport
from accel_engine.run.diagnostics.packing import unpack

_RESULTS = "report"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A report on evaluated examples.

    Attributes:
        split: The examples: ``test``, ``validation`` or ``training``, or the file name of other data.
        step: Steps that the model was trained for.
        report: The report, as of a validation.
        notes: Warnings for the user.
    """

    split: str
    step: int
    report: ValidationReport
    notes: tuple[str, ...]


class DiagnosisQuery(FolderQuery):
    """A request to report on examples, on the CPU.

    Args:
        directory: The run's directory.
        options: Which examples, and which checkpoint.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run has no checkpoint.
    """

    def __init__(self, directory: Path, options: EvaluationOptions) -> None:
        check_checkpoint(directory)
        request = {
            "directory": str(directory),
            "data": options.data,
            "split": options.split,
            "checkpoint": options.checkpoint,
        }
        super().__init__(("--diagnose",), lambda folder: {**request, "results": str(folder / _RESULTS)})

    def diagnosis(self, on_progress: Callable[[int, int], object] = no_progress) -> Diagnosis:
        """Wait for the report, at least as long as TensorFlow takes to import.

        Args:
            on_progress: Called now and then with the number of examples done, and of all (0 if unknown).

        Raises:
            RunError: The model cannot be used; why.
        """
        reply = self.answer(on_progress)
        try:
            report = unpack(reply["head"], (self.folder / _RESULTS).read_bytes())
        except (OSError, ValueError) as error:
            raise RunError(f"the report cannot be read: {error}") from error
        return Diagnosis(reply["split"], reply["step"], report, tuple(reply["notes"]))
