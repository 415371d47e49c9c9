"""Runs what a GPU must show, part by part, goes on where it ended before, and writes a table of what was measured.

    python benchmarks/gpu/run.py [--on gpu|cpu] [--results DIR] [--jax PYTHON] [--minutes N] [--part NAME ...] [--again]

Each part is a process of at most ten minutes. Its output and what it measured are files in a folder of the results that
is named after the card and its driver; a part whose result is there is not run again. ``results.md`` there is written
after each part. A part that fails keeps its output, and the others go on.
"""

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

sys.path.insert(0, str(Path(__file__).parent))

from parts import MOST_SECONDS, PARTS, Part

HERE = Path(__file__).parent

TABLE = "results.md"

LONGEST = 400
"""Characters of what was measured in the table; the files of results have all."""

LEAST_SECONDS = 60
"""No part is started with less time left."""

_TOKEN = "BENCHMARK_TOKEN"
"""Variable by whose value the processes of a part are known."""

DONE, FAILED, TIMED_OUT, MISSING = "done", "failed", "timed out", "not in this version"


@dataclass(frozen=True)
class Machine:
    """What a part ran on."""

    name: str
    """The cards, or the processor."""
    driver: str
    """The driver's version; empty on a CPU."""
    versions: Mapping[str, str]
    """Of packages, by name."""
    gpus: int = 0
    """How many GPUs it has."""

    @property
    def folder(self) -> str:
        """The name of the folder of its results."""
        return re.sub(r"[^a-z0-9.]+", "-", f"{self.name} {self.driver}".lower()).strip("-")

    @property
    def text(self) -> str:
        """All of it."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return ", ".join(filter(None, (self.name, f"driver {self.driver}" if self.driver else "", versions)))


def find_machine(*, on_gpu: bool) -> Machine:
    """This machine; without GPUs if it is used as a CPU."""
    names, driver = _gpus() if on_gpu else ((), "")
    versions = {"Python": platform.python_version()}
    for package in ("accel-tui", "tensorflow", "tensorflow-cpu", "keras"):
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    counted = (f"{count} x {each}" if count > 1 else each for each, count in Counter(names).items())
    name = ", ".join(counted) if names else f"CPU {_processor()}, {os.cpu_count()} logical CPUs"
    return Machine(name, driver, versions, len(names))


def _gpus() -> tuple[tuple[str, ...], str]:
    """The names of the GPUs, and the version of the driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return tuple(pynvml.nvmlDeviceGetName(each) for each in handles), pynvml.nvmlSystemGetDriverVersion()
    except pynvml.NVMLError:
        return (), ""


def _processor() -> str:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        if names:
            return names[0]
    return platform.processor() or platform.machine()


def run_part(
    part: Part, command: Sequence[str], folder: Path, machine: Machine, seconds: float
) -> dict[str, Any] | None:
    """Run a part, and write its output and its result.

    Args:
        part: The part.
        command: Its words.
        folder: Where its files are written.
        machine: What it runs on.
        seconds: Seconds that are left for it.

    Returns:
        The result; ``None`` if the time that was left has ended it before its limit.
    """
    output, began = folder / f"{part.name}.txt", time.monotonic()
    variables = {**os.environ, "BENCHMARK_FOLDER": str(folder.absolute()), **part.variables}
    with output.open("w") as file:
        status = _status(command, file, variables, min(seconds, part.limit), part.statuses)
    if status == TIMED_OUT and seconds < part.limit:
        return None
    text = output.read_text(errors="replace")
    values = list(_values(text))
    if status == DONE and values and all("missing" in each for each in values):
        status = MISSING
    result = {
        "part": part.name,
        "status": status,
        "seconds": round(time.monotonic() - began, 1),
        "date": time.strftime("%Y-%m-%d"),
        "machine": asdict(machine),
        "command": list(command),
        "variables": dict(part.variables),
        "values": values,
        "text": _measured(text, values),
    }
    path = folder / f"{part.name}.json"
    path.with_suffix(".new").write_text(json.dumps(result, indent=1))
    path.with_suffix(".new").replace(path)  # a result is there as a whole, or not at all
    return result


def _status(
    command: Sequence[str], output: Any, variables: Mapping[str, str], limit: float, statuses: Sequence[int]
) -> str:
    """Run a command to its end or the limit, with all processes that it has started."""
    token = uuid4().hex
    try:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**variables, _TOKEN: token},
            start_new_session=True,
        )
    except OSError as error:
        output.write(f"{command[0]}: {error.strerror}\n")
        return FAILED
    try:
        return DONE if process.wait(limit) in statuses else FAILED
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _kill_started(token)


def _kill_started(token: str) -> None:
    """Kill what a part has started in other sessions, such as engines, which would use the GPU beside the next part."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(_TOKEN) == token:
                process.kill()


def _values(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that a part has printed, one in a line."""
    for line in text.splitlines():
        if line.startswith("{"):
            with suppress(json.JSONDecodeError):
                yield json.loads(line)


def _measured(text: str, values: Sequence[Mapping[str, Any]]) -> str:
    """What a part has measured, in words: what it says, the row of its table, what it lacks, or its last line."""
    if said := [str(each["text"]) for each in values if each.get("text")]:
        return "; ".join(said)
    if missing := [str(each["missing"]) for each in values if "missing" in each]:
        return f"there is no {', '.join(missing)}"
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    if len(rows) > 1:
        return ", ".join(f"{head} {cell}" for head, cell in zip(rows[0][1:], rows[-1][1:], strict=False))
    lines = text.strip().splitlines()
    return f"{len(lines)} lines of output" if len(values) > 1 or not lines else lines[-1].strip()


def write_table(
    parts: Iterable[Part], predictions: Mapping[str, Any], folder: Path, lacks: Mapping[str, str], title: str
) -> None:
    """Write what was predicted and measured.

    Args:
        parts: All parts.
        predictions: What was predicted of each, by its name.
        folder: The results.
        lacks: What parts need that the machine does not have, by their names.
        title: The machine.
    """
    lines = [
        f"# {title}",
        "",
        "| part | question | predicted | measured | as predicted | on | s |",
        "|---|---|---|---|---|---|---|",
    ]
    for part in parts:
        predicted, result = predictions.get(part.name, {}), read_result(folder, part)
        cells = [part.name, part.question, _predicted(predicted)]
        if result is None:
            cells += [lacks.get(part.name) or "not run yet", "", "", ""]
        else:
            status = "" if result["status"] == DONE else f"**{result['status']}**, see {part.name}.txt: "
            on = Machine(**result["machine"])
            measured = f"{status}{result['text']}"
            cells += [measured if len(measured) <= LONGEST else f"{measured[:LONGEST]}…"]
            cells += [_verdict(predicted, result), f"{on.text}, {result['date']}", f"{result['seconds']:.0f}"]
        lines.append(f"| {' | '.join(cell.replace('|', '/').replace(chr(10), ' ') for cell in cells)} |")
    (folder / TABLE).write_text("\n".join(lines) + "\n")


def read_result(folder: Path, part: Part) -> dict[str, Any] | None:
    """The result of a part; ``None`` if it has not ended."""
    try:
        found: dict[str, Any] = json.loads((folder / f"{part.name}.json").read_text())
    except (OSError, json.JSONDecodeError):
        return None
    return found


def _predicted(predicted: Mapping[str, Any]) -> str:
    ratio = predicted.get("ratio")
    return predicted.get("text", "") if ratio is None else f"{ratio[0]:g} to {ratio[1]:g} times"


def _verdict(predicted: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Whether a ratio is in the range of its prediction; on GPUs only, and empty for other predictions."""
    ratios = [each["ratio"] for each in result["values"] if "ratio" in each]
    if not ratios or "ratio" not in predicted or not result["machine"]["gpus"]:
        return ""
    low, high = predicted["ratio"]
    return "yes" if low <= ratios[-1] <= high else "less" if ratios[-1] < low else "more"


def run_all(parts: Sequence[Part], arguments: argparse.Namespace, predictions: Mapping[str, Any]) -> int:
    """Run the parts that have no result yet; returns the exit status."""
    on_gpu = arguments.on == "gpu"
    machine = find_machine(on_gpu=on_gpu)
    if on_gpu and not machine.gpus:
        print("this machine has no NVIDIA GPU: --on cpu runs what works without one", file=sys.stderr)
        return 2
    folder = arguments.results / machine.folder
    folder.mkdir(parents=True, exist_ok=True)
    jax = str(arguments.jax or "")
    lacks = {part.name: part.lacks(machine.gpus, jax, on_gpu=on_gpu) for part in parts}
    title = machine.text if on_gpu else f"{machine.text}: the programs of GPUs on a CPU, which shows no speed of a GPU"
    until = time.monotonic() + 60 * (arguments.minutes or float("inf"))
    chosen = [part for part in parts if not arguments.part or part.name in arguments.part]
    failed = False
    for part in chosen:
        known = None if arguments.again else read_result(folder, part)
        if lacks[part.name] or known:
            print(f"{part.name}: {lacks[part.name] or known['status']}", flush=True)
        else:
            left = until - time.monotonic()
            command = part.command(jax, on_gpu=on_gpu)
            known = run_part(part, command, folder, machine, left) if left > LEAST_SECONDS else None
            if known is None:
                print(f"{part.name}: no time left, run the command again", flush=True)
                break
            print(f"{part.name}: {known['status']} after {known['seconds']:.0f} s: {known['text']}", flush=True)
        failed |= bool(known) and known["status"] in (FAILED, TIMED_OUT)
        write_table(parts, predictions, folder, lacks, title)
    write_table(parts, predictions, folder, lacks, title)
    print(folder / TABLE)
    return int(failed)


def main(parts: Sequence[Part] = PARTS, words: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--results", type=Path, default=Path("gpu-results"), metavar="DIR")
    parser.add_argument("--jax", type=Path, metavar="PYTHON", help="a Python with jax and keras; default: without JAX")
    parser.add_argument(
        "--minutes", type=float, help="end after this time, to go on with the same command; at least 10"
    )
    parser.add_argument("--part", action="append", choices=[part.name for part in parts], metavar="NAME")
    parser.add_argument("--again", action="store_true", help="run parts again that have a result")
    parser.add_argument("--list", action="store_true", help="print the parts, and run none")
    arguments = parser.parse_args(words)
    if arguments.list:
        for part in parts:
            print(f"{part.name:22} {part.question}")
        return 0
    if arguments.minutes is not None and arguments.minutes < MOST_SECONDS / 60:
        parser.error(f"--minutes: at least {MOST_SECONDS / 60:.0f}, the limit of a part")
    if arguments.jax and not arguments.jax.is_file():
        parser.error(f"--jax: there is no {arguments.jax}; give the path of a Python with jax and keras")
    return run_all(parts, arguments, tomllib.loads((HERE / "predictions.toml").read_text()))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # after the end of the part
    sys.exit(main())
