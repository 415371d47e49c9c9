"""The catalogue of datasets: names, summaries, shapes and counts, without TensorFlow.

The modules that describe or load a dataset are imported when they are needed. Only loading may import TensorFlow.
"""

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine.data.data_options import DataOptions, Progress, no_progress
from accel_engine.data.file_kinds import cure_by_suffix, find_folder_reader
from accel_engine.data.source import DatasetEntry, Source, parse_size
from accel_engine.errors import PlanError
from accel_engine.files import regular
from accel_engine.text import suggestion
from accel_engine.user_paths import exists, is_directory, no_file, user_path

if TYPE_CHECKING:
    from accel_engine.data.dataset import Dataset

__all__ = [
    "CATALOGUE",
    "CLOUD_STORAGE",
    "DataOptions",
    "DatasetEntry",
    "find",
    "find_built_in",
    "load",
    "parse_size",
    "source_of",
    "survey",
]

_KERAS = "built_in:KerasDataset"

CATALOGUE: dict[str, DatasetEntry] = {
    entry.name: entry
    for entry in (
        DatasetEntry(
            "digits",
            "Handwritten digits, 8x8, built in (no download)",
            "built_in:Digits",
            (8, 8, 1),
            10,
            1437,
            360,
        ),
        DatasetEntry(
            "synthetic",
            "Synthetic images of any shape, for benchmarks",
            "built_in:Synthetic",
            (32, 32, 3),
            10,
            10_000,
            1_000,
        ),
        DatasetEntry("mnist", "Handwritten digits, 28x28", _KERAS, (28, 28, 1), 10, 60_000, 10_000),
        DatasetEntry("fashion_mnist", "Articles of clothing, 28x28", _KERAS, (28, 28, 1), 10, 60_000, 10_000),
        DatasetEntry("cifar10", "Colour photos of 10 classes, 32x32", _KERAS, (32, 32, 3), 10, 50_000, 10_000),
        DatasetEntry("cifar100", "Colour photos of 100 classes, 32x32", _KERAS, (32, 32, 3), 100, 50_000, 10_000),
    )
}
"""Datasets by name."""

_FILE_READERS = {
    ".npz": "npz:ArraySource",
    ".npy": "npz:ArraySource",
    ".csv": "tables:TableSource",
    ".tsv": "tables:TableSource",
    ".parquet": "tables:TableSource",
    ".jsonl": "tables:TableSource",
    ".ndjson": "tables:TableSource",
    ".txt": "language_text:LanguageText",
    ".tfrecord": "prepared.tfrecord:TFRecord",
    ".tfrecords": "prepared.tfrecord:TFRecord",
}
"""The source of a file, by its suffix."""

FILE_SUFFIXES = tuple(_FILE_READERS)
"""The suffixes of files with data."""

CLOUD_STORAGE = "gs://"
"""The beginning of an address in Google Cloud Storage."""

_SYNTHETIC = re.compile(r"synthetic(?::(\d{1,9}(?:x\d{1,9}){0,9})(?::(\d{1,9})(?::(\d{1,9}))?)?)?")


def find_built_in(spec: str) -> DatasetEntry | None:
    """The dataset of a catalogue name, or the synthetic one, whatever files there are; ``None`` for all else.

    Raises:
        PlanError: There is no such synthetic dataset.
    """
    if spec.partition(":")[0] == "synthetic":
        return _synthetic(spec)
    return CATALOGUE.get(spec.lower().replace("-", "_"))


def find(spec: str) -> DatasetEntry:
    """Find the dataset of a plan's ``data``, without reading it.

    Args:
        spec: A catalogue name, ``synthetic[:SHAPE[:CLASSES[:EXAMPLES]]]``, e.g. ``synthetic:224x224x3:1000``,
            ``FILE.py:FUNCTION``, ``PACKAGE.MODULE:FUNCTION``, a file or a folder, or ``gs://`` and the path of TFRecord
            files.

    Raises:
        PlanError: There is no such dataset, file or folder, or the system does not let it be read.
    """
    if not spec.strip():  # as a path it would be the current directory
        raise PlanError("data", spec, f"no dataset given; {suggestion(spec, CATALOGUE)}")
    if entry := find_built_in(spec):
        return entry
    if spec.startswith(CLOUD_STORAGE):
        return _in_cloud_storage(spec)
    path = user_path(spec)
    if reader := _FILE_READERS.get(path.suffix.lower()):
        try:
            regular(path)
        except (FileNotFoundError, ValueError) as error:  # a ValueError for a name with a null character
            raise PlanError("data", spec, "no such file") from error
        except OSError as error:
            raise PlanError("data", spec, str(error.strerror)) from error
        return DatasetEntry(path.stem, f"Data in {path.name}", reader, path=path, value_range=None, kind="arrays")
    if is_directory(path):
        reader, kind = find_folder_reader(path)
        name = path.resolve().name
        return DatasetEntry(name, f"{kind.capitalize()} in {path}", reader, path=path, kind=kind)
    if function := _user_function(spec):
        return function
    if path.suffix == ".py":
        raise PlanError("data", spec, f"add the function that returns the data, e.g. {spec}:load")
    if "/" in spec or exists(path):
        hint = f"; {cure}" if (cure := cure_by_suffix(path.suffix.lower())) else ""
        raise PlanError("data", spec, f"not a folder, nor a file that ends with {', '.join(_FILE_READERS)}{hint}")
    raise PlanError("data", spec, f"no such dataset or file; {suggestion(spec, CATALOGUE)}")


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Complete an entry with what the names, headers and first rows of the user's files tell; without TensorFlow.

    Args:
        entry: Result of :func:`find`.
        options: How the data is read and split.

    Raises:
        DataError: The file or folder cannot be used.
        PlanError: An option does not fit the data.
    """
    surveyed = _open(entry, options).describe()
    if options.class_weight:
        import_module("accel_engine.data.class_weight").check_class_weights(surveyed, options)
    return surveyed


def load(spec: str, options: DataOptions, progress: Progress = no_progress) -> "Dataset":
    """Read a dataset; for the engine process only, as it may import TensorFlow.

    Args:
        spec: A plan's ``data``.
        options: How the data is read and split.
        progress: Reports the number of examples read.

    Raises:
        PlanError: There is no such dataset, or an option does not fit it.
        DataError: The data cannot be read, or is invalid.
    """
    dataset = _open(find(spec), options).load(progress)
    class_weight = import_module("accel_engine.data.class_weight")
    if not options.keeps_split:  # else the other examples are those of an evaluation
        warnings = class_weight.unlearned_classes(dataset, options)
        dataset = replace(dataset, warnings=(*dataset.warnings, *warnings))
    if options.class_weight:
        dataset = class_weight.weighted(dataset, options)
    return dataset


def _open(entry: DatasetEntry, options: DataOptions) -> Source:
    """The source of an entry, once the options are found to be for it."""
    _check_options(entry, options)
    return source_of(entry)(entry, options)


def source_of(entry: DatasetEntry) -> type[Source]:
    """The class that describes and loads an entry."""
    module, _, name = entry.reader.partition(":")
    return getattr(import_module(f"accel_engine.data.{module}"), name)


def _in_cloud_storage(url: str) -> DatasetEntry:
    bucket, _, path = url.removeprefix(CLOUD_STORAGE).partition("/")
    name = path.rstrip("/").rpartition("/")[2]
    suffix = Path(name).suffix.lower()
    if not bucket or not name or (suffix and ".tfrecord" not in name):
        raise PlanError("data", url, "must be a TFRecord file or a folder of these: copy other data to this machine")
    return DatasetEntry(
        name.partition(".")[0] or name,
        f"TFRecord files in {url}",
        "prepared.tfrecord:RemoteTFRecord",
        value_range=None,
        kind="arrays",
        url=url,
        notes=("Google Cloud Storage is not read before TensorFlow starts",),
    )


def _user_function(spec: str) -> DatasetEntry | None:
    """The entry of ``FILE.py:FUNCTION`` or ``PACKAGE.MODULE:FUNCTION``; ``None`` for anything else."""
    target, colon, function = spec.rpartition(":")
    if not colon or not function.isidentifier():
        return None
    path = user_path(target) if target.endswith(".py") else None
    if path is not None and (why := no_file(path)):
        raise PlanError("data", spec, f"{why}: {target}")
    if path is None and not all(part.isidentifier() for part in target.split(".")):
        return None
    name = f"{path.stem}:{function}" if path else spec
    summary = f"What {function} in {path.name if path else target} returns"
    return DatasetEntry(
        name, summary, "python_source:PythonSource", path=path, function=spec, value_range=None, kind="arrays"
    )


def _check_options(entry: DatasetEntry, options: DataOptions) -> None:
    if options.image_size is not None and not source_of(entry).resizes_images:
        raise PlanError("image_size", options.image_size, f"only for a folder of images; data is {entry.name}")
    if options.validation_steps is not None and not entry.function:
        reason = "only for a function that returns a stream; all other validation examples are used"
        raise PlanError("validation_steps", options.validation_steps, reason)


def _synthetic(spec: str) -> DatasetEntry:
    match = _SYNTHETIC.fullmatch(spec)
    default = CATALOGUE["synthetic"]
    shape = tuple(map(int, match[1].split("x"))) if match and match[1] else default.shape
    classes = int(match[2]) if match and match[2] else 10
    examples = int(match[3]) if match and match[3] else 10_000
    if not match or not shape or 0 in shape or classes < 2 or examples < 1:
        raise PlanError(
            "data", spec, "must be synthetic[:SHAPE[:CLASSES[:EXAMPLES]]], e.g. synthetic:224x224x3:1000:512"
        )
    return DatasetEntry("synthetic", default.summary, default.reader, shape, classes, examples, max(1, examples // 10))
