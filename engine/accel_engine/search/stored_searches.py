"""The searches on a storage that machines share."""

from dataclasses import replace

import optuna

from accel_engine.errors import RunError, UsageError
from accel_engine.json_values import decode, encode
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.storage import open_storage, reaching
from accel_engine.search.study_paths import journal_path, shown_address

DEFINITION = "accel_tui_definition"
"""Attribute of Optuna's study: the search."""


def shared_text(definition: StudyDefinition) -> str:
    """A definition as the storage has it, without the storage's address, which may have a password."""
    return encode(replace(definition, storage=""))


def names_on(storage: str) -> list[str]:
    """The names of the studies on a storage; none if a journal does not exist yet.

    Raises:
        RunError: The storage cannot be reached or read.
    """
    path = journal_path(storage)
    if path is not None and not path.is_file():
        return []
    with reaching(storage):
        return optuna.get_all_study_names(open_storage(storage))


def load_definition(storage: str, name: str = "") -> StudyDefinition:
    """The definition of a search that another machine has begun.

    Args:
        storage: Path of a journal file, or URL of a database.
        name: Name of the search; empty for the only one.

    Raises:
        RunError: The storage cannot be reached or read.
        UsageError: It has no search, several, or none of this name.
    """
    path, shown = journal_path(storage), shown_address(storage)
    if path is not None and not path.is_file():
        raise UsageError(f"there is no storage {shown}: begin a search with --storage {shown} first")
    with reaching(storage):
        opened = open_storage(storage)
        found = {study.study_name: study.user_attrs for study in optuna.get_all_study_summaries(opened)}
    ours = [each for each, attributes in found.items() if DEFINITION in attributes]
    if not ours:
        raise UsageError(f"the storage {shown} has no search of accel-tui")
    if not name and len(ours) > 1:
        raise UsageError(f"the storage {shown} has several searches: give --name {' or --name '.join(ours)}")
    if name and name not in ours:
        raise UsageError(f"the storage {shown} has no search {name!r}; it has {', '.join(ours)}")
    try:
        return replace(decode(found[name or ours[0]][DEFINITION], StudyDefinition), storage=storage)
    except ValueError as error:
        raise RunError(f"the search on the storage {shown} cannot be read: {error}") from error
