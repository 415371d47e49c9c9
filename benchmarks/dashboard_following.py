"""Measures the cost of following a live run: bytes, frames, CPU time, memory and the rate of training."""

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
"""The real engine's plan: a perceptron on data of MNIST's size."""

LARGE, SMALL = (200, 50), (80, 24)

FIRST_SCREEN_SECONDS = 3.0
"""Seconds after the start of a program that are not measured."""

BEGINNING_SECONDS = 15.0
"""Measured separately, because the scales of charts change most at the start of a run."""

CATCHING_UP_SECONDS = 1.0
"""Time for a resumed dashboard to catch up."""

HEADER = (
    "| what is followed | size | time | KiB/s | frames/s | CPU, % of a core | RSS, MB |",
    "|---|---|---|---|---|---|---|",
)

DIALOGS = (("steady run alone", ""), ("choice of charts over it", "a"), ("the run alone again", "\x1b"))
"""What is measured one after another, and the keys that lead there."""

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
    """Measure programs that have just started.

    Returns:
        For each, its usage after the first screen, after the beginning and ``seconds`` later.

    Raises:
        RuntimeError: A program has exited.
    """
    usages: list[list[Usage]] = [[] for _ in terminals]
    for wait in (FIRST_SCREEN_SECONDS, BEGINNING_SECONDS, seconds):
        time.sleep(wait)
        for taken, terminal in zip(usages, terminals, strict=True):
            terminal.check()
            taken.append(terminal.usage(family=True))
    return usages


def describe(name: str, size: tuple[int, int], usages: Sequence[Usage]) -> Iterator[str]:
    """Yield table rows under :data:`HEADER`: one for the beginning and one for the rest."""
    for word, (before, after) in zip(("first ", "next "), itertools.pairwise(usages), strict=True):
        yield usage_row(name, size, word, before, after)


def usage_row(name: str, size: tuple[int, int], word: str, before: Usage, after: Usage) -> str:
    """A row under :data:`HEADER` of what a program used between two moments."""
    seconds = after.time - before.time
    cells = (
        name,
        f"{size[0]}x{size[1]}",
        f"{word}{seconds:.0f} s",
        f"{(after.sent - before.sent) / KIB / seconds:.1f}",
        f"{(after.frames - before.frames) / seconds:.1f}",
        f"{100 * (after.cpu - before.cpu) / seconds:.1f}",
        f"{after.memory / MB:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def measure_dialog(arguments: argparse.Namespace) -> Iterator[str]:
    """Goal: a dialog over a live run costs no more than the run alone."""
    yield from HEADER
    with live_run.steady() as directory, Terminal((ACCEL_TUI, "watch", directory), *LARGE) as terminal:
        time.sleep(FIRST_SCREEN_SECONDS + BEGINNING_SECONDS)
        for name, key in DIALOGS:
            terminal.send(key)
            time.sleep(CATCHING_UP_SECONDS)
            before = terminal.usage(family=True)
            time.sleep(arguments.seconds)
            terminal.check()
            yield usage_row(name, LARGE, "", before, terminal.usage(family=True))


def measure_rate(arguments: argparse.Namespace) -> Iterator[str]:
    """Goal: with a dashboard open, training runs at 0.98 of its rate without one.

    A machine's speed drifts by more than that within a minute, so each round measures both sides within seconds, in
    alternating order. Reports the median of the rounds' ratios with its 95 % confidence interval.
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
                # A stopped process uses no CPU time, and resumes sooner than a new one starts.
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
    """The indices of sorted measurements that bound the 95 % confidence interval of their median.

    The number of measurements above the median has a binomial distribution.
    """
    below, chance = 0, 0.5**count
    while 2 * chance <= 0.05 and below < count // 2:
        below += 1
        chance += math.comb(count, below) * 0.5**count
    return max(below - 1, 0), count - 1 - max(below - 1, 0)


def _rate(reader: RunReader, seconds: float) -> float:
    """Steps per second over about this long, from the end of one chunk to the end of another."""
    reader.poll()
    time.sleep(seconds)
    chunks = reader.poll().chunks
    return sum(chunk.count for chunk in chunks[1:]) / (chunks[-1].ended - chunks[0].ended)
