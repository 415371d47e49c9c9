"""The same measure of what others run in a terminal: W&B LEET, btop, nvitop."""

import argparse
import contextlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from dashboard_following import HEADER, LARGE, SMALL, describe, follow
from terminal import Terminal

WRITER = Path(__file__).with_name("wandb_run.py")


@contextlib.contextmanager
def _wandb_run(wandb: str) -> Iterator[str]:
    """A live offline run, written by the Python that ``wandb`` is installed in; its directory."""
    python = Path(wandb).absolute().with_name("python")
    with tempfile.TemporaryDirectory(prefix="accel-tui-benchmark-") as directory:
        writer = subprocess.Popen([python, WRITER, directory], stdout=subprocess.PIPE, text=True)
        try:
            assert writer.stdout
            yield str(Path(writer.stdout.readline().strip()).parent)
        finally:
            writer.kill()
            writer.wait()


def measure_rivals(arguments: argparse.Namespace) -> Iterator[str]:
    """Others on the same measure; the CPU and memory of all their processes."""
    yield from HEADER
    for name, path, words in (
        ("W&B LEET, a run at 10 updates/s", arguments.leet, ("leet", "run")),
        ("W&B LEET symon", arguments.leet, ("leet", "symon")),
        ("btop", arguments.btop, ()),
        ("nvitop", arguments.nvitop, ()),
    ):
        if path is None:
            yield f"| {name} | not asked for | | | | | |"
            continue
        run: AbstractContextManager[str | None] = _wandb_run(path) if words == ("leet", "run") else nullcontext()
        with run as directory:
            command = [path, *words, *([directory] if directory else [])]
            for size in (LARGE, SMALL):
                yield from _measure(name, command, size, arguments.seconds)


def _measure(name: str, command: Sequence[str], size: tuple[int, int], seconds: float) -> Iterator[str]:
    try:
        with Terminal(command, *size) as terminal:
            (usages,) = follow([terminal], seconds)
    except RuntimeError as error:
        yield f"| {name} | {size[0]}x{size[1]} | {str(error).splitlines()[1]} | | | | |"
    else:
        yield from describe(name, size, usages)
