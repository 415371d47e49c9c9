"""Runs a query on a run's model in a separate engine process."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.process.engine_query import EngineQuery
from accel_engine.run import RunReader
from accel_engine.run.directory.run_paths import latest_checkpoint


class ModelQuery(EngineQuery):
    """A query on the model of a run's last checkpoint.

    Args:
        option: The option of the engine process: ``--predict`` or ``--revalidate``.
        directory: The run's directory.
        request: The request, JSON-serializable.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run has no checkpoint.
    """

    def __init__(self, option: str, directory: Path, request: Mapping[str, Any]) -> None:
        check_checkpoint(directory)
        super().__init__((option, str(directory)), request)


def described(model: Path | Plan) -> dict[str, Any]:
    """A model as engines are asked about it: the directory of its run, or a plan with its file and its data.

    Raises:
        RunError: The run has no checkpoint.
    """
    if isinstance(model, Plan):
        return {"plan": model.to_mapping()}
    check_checkpoint(model)
    return {"directory": str(model)}


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
