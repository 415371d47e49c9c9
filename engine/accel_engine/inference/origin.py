"""Tells which run a model's file was exported from; without TensorFlow."""

import json
from pathlib import Path

from accel_engine.files import regular
from accel_engine.inference.encoded_runtime import sidecar_of

DESCRIPTION = Path("assets.extra", "model.json")
"""The file in a SavedModel's directory that has what is beside other models."""


def origin_of(path: Path) -> str:
    """The id of the run that a model was exported from; empty if nothing beside or in it tells.

    Args:
        path: A model's file, or the directory of a SavedModel or of its versions.
    """
    try:
        values = json.loads(regular(_description_of(path)).read_text("utf-8"))
        name = values["name"]
    except (OSError, ValueError, KeyError, TypeError):  # of another program, or damaged: it tells nothing
        return ""
    return name if isinstance(name, str) and name not in (".", "..") and "/" not in name else ""


def _description_of(path: Path) -> Path:
    if not path.is_dir():
        return sidecar_of(path)
    versions = [each for each in path.iterdir() if each.name.isdecimal() and (each / DESCRIPTION).is_file()]
    return max(versions, key=lambda each: int(each.name), default=path) / DESCRIPTION
