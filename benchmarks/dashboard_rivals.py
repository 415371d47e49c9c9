"""Measures other terminal programs in the same way: W&B LEET, btop and nvitop."""

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
    """Yield the directory of a live offline run, written by the Python of ``wandb``'s environment."""
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
    """Other programs, with the CPU time and memory of all their processes."""
    yield from HEADER
    for name, path, words in (
        ("W&B LEET, a run at 10 updates/s", arguments.leet, ("leet", "run")),
        ("W&B LEET symon", arguments.leet, ("leet", "symon")),
        ("btop", arguments.btop, ()),
        ("nvitop", arguments.nvitop, ()),
    ):
        if path is None:
            yield f"| {name} | not measured | | | | | |"
            continue
        run: AbstractContextManager[str | None] = _wandb_run(path) if words == ("leet", "run") else nullcontext()
        with run as directory:
            command = [path, *words, *([directory] if directory else [])]
            yield from _measure(name, command, arguments.seconds)


def _measure(name: str, command: Sequence[str], seconds: float) -> Iterator[str]:
    """Yield table rows of a program in both sizes, measured at the same time; or why it failed."""
    sizes = (LARGE, SMALL)
    try:
        with contextlib.ExitStack() as stack:
            terminals = [stack.enter_context(Terminal(command, *size)) for size in sizes]
            usages = follow(terminals, seconds)
    except RuntimeError as error:
        yield f"| {name} | | {str(error).splitlines()[1]} | | | | |"
        return
    for size, used in zip(sizes, usages, strict=True):
        yield from describe(name, size, used)
