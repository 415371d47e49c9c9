"""Tells by names and first bytes what files and folders hold: what reads them, and what helps where nothing does."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from accel_engine.data.data_options import SPLIT_NAMES

IMAGE_SUFFIXES = (
    ".png", ".jpg", ".jpeg", ".jfif", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".pgm", ".ppm", ".pbm", ".pnm",
)  # fmt: skip
AUDIO_SUFFIXES = (
    ".wav", ".wave", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au", ".snd", ".caf", ".w64",
    ".rf64",
)  # fmt: skip
TEXT_SUFFIXES = (".txt",)
IMAGE_NAMES = ("images", "image")
"""Names of folders of images that have masks."""

MASK_NAMES = ("masks", "mask", "labels", "annotations")
"""Names of the folders of their masks."""

_FILE_READERS = {
    ("folders.image_folder:ImageFolder", "images"): IMAGE_SUFFIXES,
    ("folders.audio_folder:AudioFolder", "audio"): AUDIO_SUFFIXES,
    ("folders.text_folder:TextFolder", "text"): TEXT_SUFFIXES,
}
"""Suffixes of files, by the reader that reads them, as ``module:Class``, and what they hold."""

_LOOKED_AT = 1000
"""Files whose names are looked at, at most."""


def find_folder_reader(folder: Path) -> tuple[str, str]:
    """The reader of a folder, as ``module:Class``, and what it holds; images, if it holds nothing that can be read."""
    return known_folder_reader(folder) or ("folders.image_folder:ImageFolder", "images")


def known_folder_reader(folder: Path) -> tuple[str, str] | None:
    """The reader of a folder, as ``module:Class``, and what it holds; ``None`` if nothing in it looks like data."""
    names = {name.lower() for name in _names(folder)}
    if {"dataset_info.json", "features.json"} <= names:
        return "prepared.tensorflow_datasets:TensorFlowDatasets", "arrays"
    if "dataset_dict.json" in names or {"dataset_info.json", "state.json"} <= names:
        return "prepared.hugging_face:HuggingFace", "arrays"
    if any(name.endswith(".parquet") for name in (*names, *_names(folder / "data"))):
        return "prepared.hugging_face:ParquetFolder", "arrays"
    if any(".tfrecord" in name for name in names):
        return "prepared.tfrecord:TFRecord", "arrays"
    if any(
        _has_masks(each)
        for each in (folder, *(folder / name for name in _names(folder) if name.lower() in SPLIT_NAMES["train"]))
    ):
        return "folders.mask_folder:MaskFolder", "images"
    suffixes = Counter(Path(name).suffix.lower() for name in islice(_files(folder), _LOOKED_AT))
    found = Counter({kind: sum(suffixes[suffix] for suffix in _FILE_READERS[kind]) for kind in _FILE_READERS})
    kind, count = found.most_common(1)[0]
    return kind if count else None


def _has_masks(folder: Path) -> bool:
    names = {name.lower() for name in _names(folder)}
    return not names.isdisjoint(IMAGE_NAMES) and not names.isdisjoint(MASK_NAMES)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # the reader explains it
        return []


def _files(folder: Path) -> Iterator[str]:
    """The names of the files in subfolders, hidden ones excepted."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if Path(parent) != folder:
            yield from (name for name in sorted(names) if not name.startswith("."))


class _ForeignFormat(NamedTuple):
    suffixes: tuple[str, ...]
    begins: bytes
    """A pattern of how the files begin, which no name of a column does; empty if the suffix must do."""
    what: str
    """The name of the format, for files with the suffix of a table."""
    cure: str
    """The remedy; empty if there is none."""


_UNPACK = "unpack it first"
_TABLE = "save it as CSV"

_FOREIGN_FORMATS = (
    _ForeignFormat((".gz", ".tgz"), rb"\x1f\x8b", "packed with gzip", _UNPACK),
    _ForeignFormat((".bz2",), rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)", "packed with bzip2", _UNPACK),
    _ForeignFormat((".xz",), rb"\xfd7zXZ", "packed with xz", _UNPACK),
    _ForeignFormat((".zst",), rb"\x28\xb5\x2f\xfd", "packed with zstd", _UNPACK),
    _ForeignFormat((".zip", ".tar", ".7z", ".rar"), b"", "", _UNPACK),
    _ForeignFormat((), rb"PK\x03\x04", "a ZIP archive or a workbook of a spreadsheet", f"unpack it, or {_TABLE}"),
    _ForeignFormat((".xls", ".xlsx", ".ods"), rb"\xd0\xcf\x11\xe0", "a workbook of a spreadsheet", _TABLE),
    _ForeignFormat((), rb"PAR1\x15", "a Parquet file", "name it .parquet"),
    _ForeignFormat((), rb"(?i:<!doctype|<html)", "a web page, no table", ""),
    _ForeignFormat((), rb"<\?xml", "XML, no table", ""),
    _ForeignFormat((), rb"version https://git-lfs", "a pointer of Git LFS", "git lfs pull fetches it"),
    _ForeignFormat((".json",), b"", "", "write an object per line, and name it .jsonl"),
    _ForeignFormat((".feather", ".arrow", ".orc"), b"", "", "save it as Parquet"),
    _ForeignFormat((".tab", ".dat", ".data", ".psv"), b"", "", "name a table .csv, whatever separates its columns"),
)


def cure_by_suffix(suffix: str) -> str:
    """The remedy for a file of a suffix that is not read, in lower case; empty if unknown."""
    return next((each.cure for each in _FOREIGN_FORMATS if suffix in each.suffixes), "")


def describe_foreign_file(head: bytes) -> str:
    """The kind of a file that should be a table, by its first bytes, with a remedy; empty if it may be a table."""
    begin = head[:99].lstrip()
    found = next((each for each in _FOREIGN_FORMATS if each.begins and re.match(each.begins, begin)), None)
    if found is None:
        return ""
    return ": ".join(filter(None, (found.what, found.cure)))
