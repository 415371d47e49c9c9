"""Functions of the commands on trained models: runs and files of models."""

from pathlib import Path

import click

from accel_engine.errors import UsageError
from accel_engine.models.model_files import is_model_file, why_no_layers
from accel_engine.plan import Plan
from accel_engine.run import find_run
from accel_engine.run.directory.run_paths import MODEL
from accel_engine.run.store.database import DATABASE
from accel_engine.user_paths import exists, is_file, user_path


def run_or_file(target: str) -> tuple[Path, bool]:
    """The model that a command is to use: the directory of a run, or the file of a Keras model.

    Args:
        target: What names it. The ``model.keras`` of a run is its run, which knows the classes, units and data.

    Returns:
        The path, and whether it is a run's.

    Raises:
        UsageError: There is no such run or file, or Keras cannot load it.
    """
    path = user_path(target)
    if why := why_no_layers(path):
        raise UsageError(f"{target}: {why}" if exists(path) else f"no such file: {target}")
    if not is_model_file(target):
        return find_run(target), True
    if not is_file(path):
        raise UsageError(f"no such file: {target}")
    directory = path.absolute().parent
    is_of_run = path.name == MODEL and is_file(directory / DATABASE)
    return (find_run(str(directory)), True) if is_of_run else (path, False)


def find_model(target: str, data: str, custom_objects: str = "") -> Path | Plan:
    """The directory of a run, or the plan of a file with a model, and its data.

    Raises:
        UsageError: A file is given without data, or there is no such run or file.
    """
    path, is_run = run_or_file(target)
    if is_run:
        return path
    if not data:
        raise UsageError(f"{target} does not tell its data: give it with --data")
    return Plan(model=target, data=data, custom_objects=custom_objects).absolute()


custom_objects_option = click.option(
    "--custom-objects", default="", metavar="FILE.py", help="Python file with the classes of a MODEL's layers."
)
"""The option of commands that load the file of a model."""
