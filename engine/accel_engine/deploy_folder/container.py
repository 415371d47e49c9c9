"""Writes the parts of a folder with a server: container, clients, manifests and README."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from accel_engine.deploy_folder.client_examples import EXAMPLE, MEDIA_TYPES, write_client_examples
from accel_engine.deploy_folder.facts import Facts, FolderMeasurement, figure
from accel_engine.deploy_folder.folder_options import KSERVE, KUBERNETES, RAY_SERVE, FolderOptions
from accel_engine.deploy_folder.manifests import manifest_values, rate_line, resources_of
from accel_engine.deploy_folder.rendering import TEMPLATES, Block, Value, rendered, shell_text
from accel_engine.deployment.deployments import end_process
from accel_engine.errors import RunError
from accel_engine.formats import BATCHING_FILE
from accel_engine.model_server import standalone
from accel_engine.text import printable_line
from accel_engine.version import __version__
from accel_engine.words import numbers

FILES = Path(__file__).parent / "files"
"""Files that are copied unchanged."""

SMOKE_TEST_SECONDS = 600.0
"""How long the test of a folder may take."""

_GPU = """ENV NVIDIA_VISIBLE_DEVICES=all \\
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \\
    TF_FORCE_GPU_ALLOW_GROWTH=true"""

_X86 = "sys_platform == 'linux' and platform_machine == 'x86_64'"
_OTHER = "sys_platform != 'linux' or platform_machine != 'x86_64'"
"""Where ``tensorflow-cpu`` is to be had, which is much smaller, and where it is not."""

_COMPOSE_GPU = """reservations:
  devices:
    - driver: nvidia
      count: 1
      capabilities: [gpu]"""

_RAY_DEVICES = {"cpu": "", "gpu": "num_gpus: 1", "tpu": "resources: {TPU: 1}"}

_ACCELERATOR_NOTES = {
    "cpu": "",
    "gpu": "- For an NVIDIA GPU: `docker run --gpus 1`, with NVIDIA's container toolkit. CUDA comes with\n"
    "  `tensorflow[and-cuda]`; the driver is the machine's. **Not tried on a GPU.**",
    "tpu": "- For a TPU: `docker run --privileged` on a TPU machine, or a pod with `google.com/tpu`. **Not tried on a\n"
    "  TPU.**",
}


def write_server_folder(folder: Path, facts: Facts, options: FolderOptions, threads: int = 1) -> Facts:
    """Write the parts of a folder, which has the servable folder ``model`` already, and prove it.

    Args:
        folder: The folder.
        facts: What is known of the model.
        options: What is written.
        threads: Threads of the server, which a replica gets as processors.

    Returns:
        The facts with what was measured.

    Raises:
        OSError: A file cannot be written.
        RunError: The server of the folder does not answer as the trained model does.
    """
    shutil.copytree(FILES / "service", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    standalone.copy_server(folder / "server")
    (folder / "requirements.txt").write_text("\n".join(_requirements_for(facts, options)) + "\n", "utf-8")
    example = write_client_examples(folder / "model", folder / "clients")
    (folder / "clients" / "curl.sh").write_text(_curl_script(facts, example), "utf-8")
    facts = replace(facts, measured=_proved(folder, threads))
    resources = resources_of(facts, options)
    values = manifest_values(facts, options, resources)
    values |= {"accelerator": Block(_GPU if options.accelerator == "gpu" else "")}
    write_file(folder, "Dockerfile", values)
    write_file(folder, ".dockerignore", values, "dockerignore")
    values |= {"accelerator": Block(_COMPOSE_GPU if options.accelerator == "gpu" else "")}
    write_file(folder, "compose.yaml", values)
    section = target_files = ""
    if options.target == KUBERNETES:
        section, target_files = _write_kubernetes(folder, values), "| `kubernetes/` | The manifests |"
    elif options.target == KSERVE:
        section, target_files = _write_kserve(folder, facts, values), "| `kserve/` | The manifests |"
    elif options.target == RAY_SERVE:
        shutil.copytree(FILES / "ray-serve", folder, dirs_exist_ok=True)
        devices = {"device_resource": Block(_RAY_DEVICES[options.accelerator])}
        values |= {"cpus": resources.cpus, "memory": resources.memory}
        write_file(folder, "serve.yaml", values | devices, "ray-serve/serve.yaml")
        section = rendered("ray-serve.md", _plain(values), "sections/ray-serve.md").rstrip()
        target_files = "| `serve.yaml`, `ray_serve.py` | The application of Ray Serve |"
    readme = (
        values
        | readme_values(facts)
        | {
            "predict_example": Block(_predict_example(example)),
            "measured": Block(f"{_measured_line(facts.measured)} {rate_line(facts) if facts.sizing else ''}".strip()),
            "accelerator_notes": Block(_ACCELERATOR_NOTES[options.accelerator]),
            "python_note": Block("3.12 in the container"),
            "target": Block(section),
            "target_files": Block(target_files),
            "shell_run": Block(shell_text(facts.service.run)),
            "untried": Block(
                "The container was built and run for the test of this program; no registry of images was at hand."
            ),
        }
    )
    write_file(folder, "README.md", readme)
    return facts


def write_file(folder: Path, file: str, values: Mapping[str, Value], template: str = "") -> None:
    """Write a file from its template; see :func:`accel_engine.deploy_folder.rendering.rendered`."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rendered(path.name if file == ".dockerignore" else file, values, template), "utf-8")


def _requirements_for(facts: Facts, options: FolderOptions) -> list[str]:
    """The lines of ``requirements.txt``."""
    lines = standalone.requirements(facts.service) + (["ray[serve]>=2.50,<3"] if options.target == RAY_SERVE else [])
    kept = [line for line in lines if not line.startswith("tensorflow")]
    version = facts.service.versions.get("tensorflow", "")
    if options.accelerator == "cpu":
        if kept == lines:
            return lines
        return [*kept, f"tensorflow-cpu=={version}; {_X86}", f"tensorflow=={version}; {_OTHER}"]
    if options.accelerator == "gpu":
        return [*kept, f"tensorflow[and-cuda]=={version}"]
    return [*kept, "tensorflow-tpu==2.20.0", "libtpu>=0.0.14,<0.0.32"]


def _curl_script(facts: Facts, example: str) -> str:
    """A shell script that sends the example with ``curl``."""
    name = quote(facts.service.name, safe="")
    lines = [
        "#!/bin/sh",
        "# Asks the server for the example of this folder: sh curl.sh [URL]",
        "set -eu",
        'url="${1:-http://127.0.0.1:8501}"',
        'here="$(dirname "$0")"',
        f"curl -sS --fail-with-body -H 'Content-Type: application/json' --data-binary @\"$here/{EXAMPLE}\" \\",
        f'    "$url"{shell_text(f"/v2/models/{name}/infer")}',
        "echo",
    ]
    if example:
        media = MEDIA_TYPES[Path(example).suffix]
        lines += [
            f'curl -sS --fail-with-body -H \'Content-Type: {media}\' --data-binary @"$here/{example}" "$url/predict"',
            "echo",
        ]
    return "\n".join(lines) + "\n"


def _proved(folder: Path, threads: int) -> FolderMeasurement:
    """Run the folder's own test; returns its measurements.

    Raises:
        RunError: The test finds a difference, or fails.
    """
    command = [sys.executable, str(folder / "smoke_test.py"), "--json", "--threads", str(threads)]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": "-1"}
    test = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with test:
        try:
            output, errors = test.communicate(timeout=SMOKE_TEST_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise RunError(f"the server of the folder did not answer within {SMOKE_TEST_SECONDS:.0f} s") from error
        finally:
            end_process(test)  # which ends its server; a kill would leave that behind
    try:
        found = json.loads(output)
    except ValueError as error:
        words = printable_line(errors.decode("utf-8", "replace")[-500:].strip())
        raise RunError(f"the test of the folder failed: {words}") from error
    if found["problem"]:
        raise RunError(f"the server of the folder is not right: {printable_line(str(found['problem']))}")
    return _measured(found)


def _measured(found: dict[str, Any]) -> FolderMeasurement:
    names = [each.name for each in fields(FolderMeasurement)]
    return FolderMeasurement(**{name: value for name, value in found.items() if name in names})


def readme_values(facts: Facts) -> dict[str, Value]:
    """Values for the READMEs of all kinds of folders."""
    service = facts.service
    return {
        "name": service.name,
        "run": service.run,
        "task": service.task,
        "step": f"{service.step:,}",
        "model": facts.model,
        "inputs": ", ".join(f"{each.name}: {each.spec}" for each in service.inputs[:12]) + _more(len(service.inputs)),
        "outputs": ", ".join(f"{each.name}: {each.spec}" for each in service.outputs),
        "verified": _verified(facts),
        "url_name": Block(quote(service.name, safe="")),
        "split": service.split,
        "examples": service.examples,
        "tolerance": figure(service.model.tolerance),
        "accel_version": __version__,
    }


def _more(count: int) -> str:
    return f" and {count - 12} more" if count > 12 else ""


def _verified(facts: Facts) -> str:
    export = facts.export
    word = "in the mean" if facts.service.model.by_mean else "at most"
    found = export.written[0] if export.written else None
    value = (found.mean if facts.service.model.by_mean else found.largest) if found else None
    return (
        f"{export.examples:,} {export.split} examples: differs from the trained model by {figure(value, 2)} {word}, "
        f"where {figure(facts.service.model.tolerance)} is allowed"
    )


def _measured_line(measured: FolderMeasurement | None) -> str:
    """The measurements, as a sentence."""
    if measured is None:
        return ""
    memory = f", with {numbers.size(measured.memory_bytes)} of memory" if measured.memory_bytes else ""
    threads = f"{measured.threads} {numbers.plural(measured.threads, 'thread')}"
    return (
        f"Where this folder was written, that was {measured.rate:.0f} requests/s of one example, with {threads} and "
        f"{measured.connections} connections: p50 {measured.p50 * 1000:.2f} ms, p99 {measured.p99 * 1000:.2f} "
        f"ms. The server was ready after {measured.load_seconds:.1f} s{memory}."
    )


def _predict_example(example: str) -> str:
    if not example:
        return "`POST /predict` takes no file for this model: send arrays by v1 or v2."
    media = MEDIA_TYPES[Path(example).suffix]
    return (
        "A file as it is, which the server prepares as the training did:\n\n"
        f"    curl -H 'Content-Type: {media}' --data-binary @clients/{example} http://127.0.0.1:8501/predict"
    )


def _write_kubernetes(folder: Path, values: dict[str, Value]) -> str:
    """Write the manifests; returns the section of the README."""
    for template in sorted((TEMPLATES / "kubernetes").iterdir()):
        write_file(folder, f"kubernetes/{template.name}", values)
    return rendered("kubernetes.md", _plain(values), "sections/kubernetes.md").rstrip()


def _write_kserve(folder: Path, facts: Facts, values: dict[str, Value]) -> str:
    write_file(folder, "kserve/inference-service.yaml", values)
    note = "`--format savedmodel` adds `kserve/tensorflow-runtime.yaml`, for TensorFlow Serving's own runtime."
    if facts.service.model.format == "savedmodel":
        flags = ["- --enable_batching", "- --batching_parameters_file=/mnt/models/batching.config"]
        has_batching = (folder / "model" / "model" / BATCHING_FILE).is_file()
        batching = {"batching": Block("\n".join(flags if has_batching else []))}
        write_file(folder, "kserve/tensorflow-runtime.yaml", values | batching)
        note = (
            "`kserve/tensorflow-runtime.yaml` serves the SavedModel by TensorFlow Serving itself (v1), with its image\n"
            "named. Copy the folder `model/model` to the volume, or change `storageUri`."
        )
    return rendered("kserve.md", _plain(values) | {"tensorflow": Block(note)}, "sections/kserve.md").rstrip()


def _plain(values: dict[str, Value]) -> dict[str, Value]:
    """The values with labels and images unquoted: they are in code of Markdown, and have no characters to quote."""
    return values | {name: Block(str(values[name])) for name in ("image", "label")}
