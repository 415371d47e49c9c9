"""Tells from a folder's names what it holds; without TensorFlow."""

import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

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
MASK_NAMES = ("masks", "mask", "labels", "annotations")
"""Names of the folders of images and of their masks."""

_KINDS = {
    ("folders.image_folder:ImageFolder", "images"): IMAGE_SUFFIXES,
    ("folders.audio_folder:AudioFolder", "audio"): AUDIO_SUFFIXES,
    ("folders.text_folder:TextFolder", "text"): TEXT_SUFFIXES,
}
"""Suffixes of the files that a reader reads."""

_LOOKED_AT = 1000
"""Number of files whose names are looked at."""


def find_folder_reader(folder: Path) -> tuple[str, str]:
    """The module that reads a folder, and what the folder holds; images, if it holds nothing that can be read."""
    return known_folder_reader(folder) or ("folders.image_folder:ImageFolder", "images")


def known_folder_reader(folder: Path) -> tuple[str, str] | None:
    """The module that reads a folder, and what the folder holds; ``None`` if nothing in it looks like data."""
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
    found = Counter({kind: sum(suffixes[suffix] for suffix in _KINDS[kind]) for kind in _KINDS})
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
