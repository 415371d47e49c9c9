"""Tells which run a model's file was exported from; without TensorFlow."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from accel_engine.files import regular
from accel_engine.inference.text_encoding import sidecar_of

DESCRIPTION = Path("assets.extra", "model.json")
"""The file in a SavedModel's directory that has what is beside other models."""

MAX_COMMENT = 65_535
"""Bytes of the comment of a zip archive at most."""


def origin_of(path: Path) -> str:
    """The id of the run that a model was exported from; empty if nothing beside or in it tells.

    Args:
        path: A model's file, or the directory of a SavedModel or of its versions.
    """
    try:
        name = json.loads(_description_of(path))["name"]
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError, zipfile.BadZipFile):
        return ""  # of another program, or damaged: it tells nothing
    return name if isinstance(name, str) and name not in (".", "..") and "/" not in name else ""


def write_origin(path: Path, described: Mapping[str, object]) -> None:
    """Write what is beside other models to a ``.keras`` file, as the comment of the archive.

    Keras ignores it. With a file more in the archive, it would extract all of them to a temporary directory.

    Args:
        path: The file.
        described: JSON; of more than :data:`MAX_COMMENT` bytes, only its ``name``, the id of the run, is written.
    """
    comment = json.dumps(described).encode()
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = comment if len(comment) <= MAX_COMMENT else json.dumps({"name": described["name"]}).encode()


def _description_of(path: Path) -> bytes:
    if path.is_dir():
        versions = [each for each in path.iterdir() if each.name.isdecimal() and (each / DESCRIPTION).is_file()]
        path = max(versions, key=lambda each: int(each.name), default=path)
        return regular(path / DESCRIPTION).read_bytes()
    if path.suffix == ".keras":
        with zipfile.ZipFile(regular(path)) as archive:
            return archive.comment
    return regular(sidecar_of(path)).read_bytes()
