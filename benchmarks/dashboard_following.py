"""What following a live run costs: bytes, frames, processor time and memory; and what it takes from training."""

import argparse
import contextlib
import itertools
import math
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import live_run
from accel_engine.run import RunReader
from terminal import Terminal, Usage

ACCEL_TUI = Path(sys.executable).with_name("accel-tui")

MLP = {"model": "mlp", "data": "synthetic:28x28x1:10:60000", "batch_size": 32}
"""What the real engine trains: a perceptron on as much as MNIST has."""

LARGE, SMALL = (200, 50), (80, 24)

FIRST_SCREEN_SECONDS = 3.0
"""From the start of a program until its first screen is out of the way, which is not part of following."""

BEGINNING_SECONDS = 15.0
"""Measured apart, because the scales of charts change most while a run is young."""

CATCHING_UP_SECONDS = 1.0
"""What a dashboard gets to show what happened while it was halted."""

HEADER = (
    "| what is followed | size | time | KiB/s | frames/s | CPU, % of a core | RSS, MB |",
    "|---|---|---|---|---|---|---|",
)

KIB, MB = 1024, 1e6


def measure_bytes(arguments: argparse.Namespace) -> Iterator[str]:
    """Goals at 10 updates a second: 12 KiB/s at 200x50 and 4 at 80x24; 6 % of a core; 90 MB."""
    yield from HEADER
    runs = {"steady run, 1,000 steps/s": live_run.steady(), "`mlp`, batch 32, real engine": live_run.trained(**MLP)}
    for name, made in runs.items():
        with made as directory, contextlib.ExitStack() as stack:
            command, sizes = (ACCEL_TUI, "watch", directory), (LARGE, SMALL)
            terminals = [stack.enter_context(Terminal(command, *size)) for size in sizes]
            for size, usages in zip(sizes, follow(terminals, arguments.seconds), strict=True):
                yield from describe(name, size, usages)


def follow(terminals: Sequence[Terminal], seconds: float) -> list[list[Usage]]:
    """Let programs that were just started show what they show.

    Returns:
        Of each, what it had used after the first screen, after the beginning, and ``seconds`` later.

    Raises:
        RuntimeError: A program has ended.
    """
    usages: list[list[Usage]] = [[] for _ in terminals]
    for wait in (FIRST_SCREEN_SECONDS, BEGINNING_SECONDS, seconds):
        time.sleep(wait)
        for taken, terminal in zip(usages, terminals, strict=True):
            terminal.check()
            taken.append(terminal.usage(family=True))
    return usages


def describe(name: str, size: tuple[int, int], usages: Sequence[Usage]) -> Iterator[str]:
    """Rows under :data:`HEADER`: the beginning, and the rest."""
    for word, (before, after) in zip(("first", "next"), itertools.pairwise(usages), strict=True):
        seconds = after.time - before.time
        cells = (
            name,
            f"{size[0]}x{size[1]}",
            f"{word} {seconds:.0f} s",
            f"{(after.sent - before.sent) / KIB / seconds:.1f}",
            f"{(after.frames - before.frames) / seconds:.1f}",
            f"{100 * (after.cpu - before.cpu) / seconds:.1f}",
            f"{after.memory / MB:.0f}",
        )
        yield f"| {' | '.join(cells)} |"


def measure_rate(arguments: argparse.Namespace) -> Iterator[str]:
    """Goal: with a dashboard open, training goes at 0.98 of its rate without one.

    A machine drifts by more than that within a minute, and a round of two turns, one with a dashboard and one without,
    is over in seconds: what drifts is the same for both, and by turns another one is first. The median of many rounds
    is what is told, and between which two of them the true one lies in 95 of 100 cases, however the noise is spread.
    """
    yield "| what is trained | headless, steps/s | with a dashboard | median ratio | 95 % within |"
    yield "|---|---|---|---|---|"
    rates: dict[bool, list[float]] = {True: [], False: []}
    with (
        live_run.trained(**MLP, validation="off") as directory,
        contextlib.closing(RunReader(directory)) as reader,
        Terminal([ACCEL_TUI, "watch", directory], *LARGE) as terminal,
    ):
        time.sleep(BEGINNING_SECONDS)  # the engine has tried XLA by then
        for number in range(arguments.rounds):
            for watched in (True, False) if number % 2 else (False, True):
                # A halted process costs what none costs, and is back sooner than a new one.
                terminal.process.send_signal(signal.SIGCONT if watched else signal.SIGSTOP)
                time.sleep(CATCHING_UP_SECONDS)
                rates[watched].append(_rate(reader, arguments.turn))
                terminal.check()
    ratios = sorted(with_it / without for with_it, without in zip(rates[True], rates[False], strict=True))
    medians = f"{statistics.median(rates[False]):.0f} | {statistics.median(rates[True]):.0f}"
    low, high = of_median(len(ratios))
    spread = f"{statistics.median(ratios):.3f} | {ratios[low]:.3f} to {ratios[high]:.3f}"
    yield f"| `mlp`, batch 32, {len(ratios)} rounds | {medians} | {spread} |"


def of_median(count: int) -> tuple[int, int]:
    """Between which two of sorted measurements their true median lies in 95 of 100 cases; the ends where they are few.

    Each is above it with a chance of one half, so how many are is distributed binomially.
    """
    below, chance = 0, 0.5**count
    while 2 * chance <= 0.05 and below < count // 2:
        below += 1
        chance += math.comb(count, below) * 0.5**count
    return max(below - 1, 0), count - 1 - max(below - 1, 0)


def _rate(reader: RunReader, seconds: float) -> float:
    """Steps a second over about this long, from the end of a chunk to the end of another."""
    reader.poll()
    time.sleep(seconds)
    chunks = reader.poll().chunks
    return sum(chunk.count for chunk in chunks[1:]) / (chunks[-1].ended - chunks[0].ended)
