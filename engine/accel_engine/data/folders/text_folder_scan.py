"""Finds the classes and splits of a folder of text files from their names."""

from dataclasses import replace
from pathlib import Path

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.folders.class_folder import ClassFolder, scan_class_folder, survey_of_classes
from accel_engine.data.folders.file_check import unreadable_note
from accel_engine.data.folders.layout import TEXT_SUFFIXES
from accel_engine.files import regular

IGNORED = ("unsup",)
"""The reviews of IMDB without a class."""

_SHOWN = 200
"""Bytes shown of an example."""


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Find classes and counts.

    Raises:
        DataError: The folder does not have a folder of text files per class.
        PlanError: The split does not fit.
    """
    folder = scan_text_folder(entry, options)
    unreadable = unreadable_note(folder.files, regular, options)
    surveyed = survey_of_classes(entry, folder, (), "string", "text", unreadable)
    samples = tuple((label, _beginning(folder.root / name)) for name, label in surveyed.samples)
    return replace(surveyed, value_range=None, samples=samples)


def scan_text_folder(entry: DatasetEntry, options: DataOptions) -> ClassFolder:
    """Find the text files of a folder and their classes.

    Raises:
        DataError: The folder does not have a folder of text files per class.
        PlanError: The split does not fit.
    """
    return scan_class_folder(entry, options, TEXT_SUFFIXES, "text files", IGNORED)


def _beginning(path: Path) -> str:
    try:
        with regular(path).open("rb") as file:
            return " ".join(file.read(_SHOWN).decode(errors="replace").split())
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
