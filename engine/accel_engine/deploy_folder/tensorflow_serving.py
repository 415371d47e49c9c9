"""Writes a folder for TensorFlow Serving: versions, configuration, warm-up, clients and a proof."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.deploy_folder import client_examples
from accel_engine.deploy_folder.container import FILES, readme_values, write_file
from accel_engine.deploy_folder.facts import Facts
from accel_engine.deploy_folder.folder_options import FolderOptions
from accel_engine.deploy_folder.manifests import serving_image
from accel_engine.deploy_folder.rendering import Block, Value, shell_text
from accel_engine.formats import BATCHING_FILE
from accel_engine.model_server.service import Service

_BATCHING_FLAGS = ["--enable_batching", "--batching_parameters_file"]


def write_serving_folder(folder: Path, servable: Path, facts: Facts, options: FolderOptions) -> None:
    """Write the folder.

    Args:
        folder: The folder.
        servable: The servable folder with the SavedModel.
        facts: What is known of it.
        options: What is written.

    Raises:
        OSError: A file cannot be written.
    """
    service = facts.service
    shutil.copytree(
        FILES / "tensorflow-serving", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    saved = servable / service.model.path
    versions = saved.parent if saved.name.isdecimal() else saved
    version = next(each for each in (saved, *sorted(saved.glob("[0-9]*"))) if (each / "saved_model.pb").is_file())
    shutil.copytree(version, folder / "models" / "model" / "1")
    has_batching = (versions / BATCHING_FILE).is_file()
    config = folder / "config"
    config.mkdir()
    if has_batching:
        shutil.copyfile(versions / BATCHING_FILE, config / BATCHING_FILE)
    _write_examples(folder, servable)
    name = readme_values(facts)["url_name"]
    path = shell_text(f"/v1/models/{name.text if isinstance(name, Block) else name}:predict")
    (folder / "clients" / "curl.sh").write_text(_CURL.replace("PATH", path), "utf-8")
    flags = [f"- {_BATCHING_FLAGS[0]}", f"- {_BATCHING_FLAGS[1]}=/config/{BATCHING_FILE}"] if has_batching else []
    words = f" \\\n        {_BATCHING_FLAGS[0]} {_BATCHING_FLAGS[1]}=config/{BATCHING_FILE}" if has_batching else ""
    file = f"| `config/{BATCHING_FILE}` | How requests are batched, from measurements |" if has_batching else ""
    values: dict[str, Value] = readme_values(facts) | {
        "serving_image": serving_image(service.versions, options),
        "batching": Block("\n".join(flags)),
        "batching_flags": Block(words),
        "batching_file": Block(file),
        "accelerator": Block(_GPU if options.accelerator == "gpu" else ""),
    }
    write_file(folder, "config/models.config", values, "tensorflow-serving/models.config")
    write_file(folder, "config/monitoring.config", values, "tensorflow-serving/monitoring.config")
    write_file(folder, "compose.yaml", values, "tensorflow-serving/compose.yaml")
    write_file(
        folder,
        "README.md",
        values | {"serving_image": Block(serving_image(service.versions, options))},
        "tensorflow-serving/README.md",
    )


_GPU = """deploy:
  resources:
    reservations:
      devices:
        - driver: nvidia
          count: 1
          capabilities: [gpu]"""

_CURL = """#!/bin/sh
# Asks TensorFlow Serving for the example of this folder: sh curl.sh [URL]
set -eu
url="${1:-http://127.0.0.1:8501}"
here="$(dirname "$0")"
curl -sS --fail-with-body -H 'Content-Type: application/json' --data-binary @"$here/example-v1.json" "$url"PATH
echo
"""


def _write_examples(folder: Path, servable: Path) -> None:
    """Write the example of the clients, and all examples with what may differ from the trained model's outputs."""
    client_examples.write_client_examples(servable, folder / "clients")
    service, (inputs, outputs) = client_examples.read_both(servable)
    compared = [each for each in service.scales if each in outputs]
    value = {
        "name": service.name,
        "examples": len(next(iter(outputs.values()))),
        "inputs": {each.name: each.dtype for each in service.inputs},
        "request": client_examples.v1_request(service, inputs),
        "outputs": {name: client_examples.plain(outputs[name].reshape(-1)) for name in compared},
        "allowed": {name: _allowed_differences(service, name, outputs[name]) for name in compared},
    }
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    (folder / "examples.json").write_text(text + "\n", "utf-8")


def _allowed_differences(service: Service, name: str, expected: Any) -> list[float]:
    """How far each value on the last axis of an output may be from the trained model's, in its own unit.

    As :func:`accel_engine.model_server.service.compare_outputs`, but values far from the middle get no
    more than others.
    """
    scale = service.scales[name]
    spread = np.array(scale.spread or (1.0,))
    if not scale.spread:
        spread = np.ones(1)
    least = np.finfo(np.float32).eps * np.abs(expected).max(initial=0.0) if expected.dtype.kind == "f" else 0.0
    return [float(max(each * service.model.tolerance, least)) for each in spread]
