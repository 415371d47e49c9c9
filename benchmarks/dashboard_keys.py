"""Measures the latency of keys in every phase of an engine, and on a slow link."""

import argparse
import contextlib
import itertools
import os
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import live_run
from accel_engine import run
from accel_engine.events import Phase, PhaseChanged
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.run import RunReader
from dashboard_following import ACCEL_TUI, FIRST_SCREEN_SECONDS, KIB, LARGE, MB, SMALL
from terminal import Terminal, Viewer

RESNET20 = {"model": "resnet20", "data": "synthetic:32x32x3:10:1280", "batch_size": 128, "epochs": 10**5}
PHASES = (Phase.IMPORTING, Phase.TRACING, Phase.TRAINING)

MOST_SESSIONS = 6
"""Maximum number of engine starts, to press enough keys in short phases."""

PAUSE_SECONDS = (0.01, 0.06)
"""Range of pauses between keys, as of a held key; random, so as not to synchronize with the frames."""

SLOW_BYTES_PER_SECOND = 2048
SLOW_TIMEOUT_SECONDS = 30.0
SLOW_PAUSE_SECONDS = (0.5, 1.5)

DOWN, UP = "\x1b[B", "\x1b[A"
DETAILS = "i"
"""The key that shows or hides the details of a run, which resizes its charts."""
CHECKPOINT = "c"
"""The key that requests a checkpoint."""


def hint(text: str) -> str:
    """The form's help on the focused field: the line above the command."""
    lines = text.splitlines()
    return next((above for above, line in itertools.pairwise(lines) if "$ accel-tui train" in line), "")


def details(text: str) -> bool:
    """Whether the run's details are on the screen."""
    return "Notices" in text


def is_asked(text: str) -> bool:
    """Whether the run screen confirms a request to the engine."""
    return "requested: checkpoint" in text


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a key on the screen.

    Attributes:
        seconds: From the key until the last byte of the frame that responds to it.
        sent: Bytes received in that time.
    """

    seconds: float
    sent: int


def press(terminal: Terminal, viewer: Viewer, key: str, sign: Callable[[str], object], timeout: float = 10.0) -> Answer:
    """Press a key and wait until ``sign`` returns another value for the screen's text."""
    before, sent = sign(viewer.text), terminal.usage().sent
    pressed = terminal.send(key)
    answered = viewer.wait_for(lambda text: sign(text) != before, timeout)
    return Answer(answered - pressed, terminal.usage().sent - sent)


def measure_keys(arguments: argparse.Namespace) -> Iterator[str]:
    """Goal: in every phase, the screen responds to 99 % of keys within 50 ms."""
    yield "| while | key | keys | p50, ms | p99, ms | max, ms | KiB per key |"
    yield "|---|---|---|---|---|---|---|"
    yield _row("idle, the form", "down`, `up", _idle(arguments.keys))
    answers: dict[Phase, list[Answer]] = defaultdict(list)
    for _ in range(MOST_SESSIONS):
        _train_and_press(answers, arguments.keys)
        if all(len(answers[phase]) >= arguments.keys for phase in PHASES):
            break
    for phase in PHASES:
        yield _row(f"{phase}, `resnet20`", "i", answers[phase])


def _row(phase: str, key: str, answers: Sequence[Answer]) -> str:
    ordered = sorted(1000 * answer.seconds for answer in answers)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    size = statistics.median(answer.sent for answer in answers) / KIB
    spread = f"{statistics.median(ordered):.0f} | {p99:.0f} | {ordered[-1]:.0f}"
    return f"| {phase} | `{key}` | {len(ordered)} | {spread} | {size:.1f} |"


def _idle(keys: int) -> list[Answer]:
    with Terminal([ACCEL_TUI], *LARGE) as terminal:
        viewer = terminal.viewer()
        viewer.wait_for(lambda text: "engine: ready" in text, 120)
        answers = []
        for key in itertools.islice(itertools.cycle((DOWN, UP)), keys):
            answers.append(press(terminal, viewer, key, hint))
            time.sleep(random.uniform(*PAUSE_SECONDS))
        return answers


def _train_and_press(answers: dict[Phase, list[Answer]], keys: int) -> None:
    """Press keys from the start of an engine until there are enough of them in training."""
    directory = run.create(Plan(**RESNET20))
    with (
        contextlib.closing(RunReader(directory)) as reader,
        Terminal([ACCEL_TUI, "watch", directory], *LARGE) as terminal,
    ):
        viewer = terminal.viewer()
        viewer.wait_for(details)
        engine = engine_process.start_engine(directory)
        try:
            phase, here = Phase.STARTING, 0
            while here < keys:
                changes = [event for event in reader.poll().events if isinstance(event, PhaseChanged)]
                phase = changes[-1].phase if changes else phase
                answers[phase].append(press(terminal, viewer, DETAILS, details))
                here += phase is Phase.TRAINING
                if phase is Phase.TRAINING and len(answers[phase]) >= keys:
                    break
                time.sleep(random.uniform(*PAUSE_SECONDS))
        finally:
            engine.kill()
            engine.wait()


SCREENS = (
    ("New run", "", "$ accel-tui train", (DOWN, UP)),
    ("Runs", "r", "filter, e.g.", (DOWN, UP)),
    ("Run", "\r", "Finished after", (DETAILS,)),
    ("Help", "?", "closes", (DOWN, UP)),
)
"""Screens in the order in which they are opened: the key that opens one, a text on it, and keys that change it."""

QUIET_SECONDS = 0.05
"""Pause after which a paint is complete."""


def measure_screens(arguments: argparse.Namespace) -> Iterator[str]:
    """From a key to the last byte of its paint, and from opening a screen to its first complete paint.

    The processor time of an opened screen is until it has read what it shows; it is less sensitive to other programs.
    With ``--against CHECKOUT`` the program of another checkout in turns, each with runs that it wrote itself.
    """
    trees = {"here": Path(__file__).resolve().parents[1]}
    trees |= {"there": arguments.against} if arguments.against else {}
    yield "| screen | size | program | first paint, ms | processor, ms | keys | median, ms | p95, ms | processor, ms |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, tree in trees.items():
        environment = _environment(name, tree)
        write = [sys.executable, Path(__file__).with_name("searches.py"), "--directories", "12", "--child", "write"]
        subprocess.run(write, env=environment, check=True)
    for size in (SMALL, LARGE):
        found = {name: _measure_program(_environment(name, tree), size, arguments.keys) for name, tree in trees.items()}
        for at, (screen, *_) in enumerate(SCREENS):
            for name, measured in found.items():
                paint, opening, times, pressing = measured[at]
                ordered = sorted(1000 * each for each in times)
                p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
                cells = (
                    *(f"{1000 * each:.0f}" for each in (paint, opening)),
                    str(len(ordered)),
                    f"{statistics.median(ordered):.0f}",
                    f"{p95:.0f}",
                    f"{1000 * pressing:.0f}",
                )
                yield f"| {screen} | {size[0]}x{size[1]} | {name} | {' | '.join(cells)} |"


def _environment(name: str, tree: Path) -> dict[str, str]:
    home = os.environ["ACCEL_TUI_HOME"]
    paths = os.pathsep.join(str(tree / part) for part in ("engine", "tui", "tests"))
    return {**os.environ, "PYTHONPATH": paths, "ACCEL_TUI_HOME": f"{home}/{name}", "ACCEL_TUI_SETTINGS": os.devnull}


def _measure_program(
    environment: Mapping[str, str], size: tuple[int, int], keys: int
) -> list[tuple[float, float, list[float], float]]:
    """For each screen, the seconds of its first paint, its processor time, the seconds of each key, and theirs."""
    command, passed = [sys.executable, "-m", "accel_tui"], {name: environment[name] for name in _PASSED}
    found = []
    with Terminal(command, *size, passed) as terminal:
        viewer = terminal.viewer()
        for _, opens, text, changing in SCREENS:
            before = terminal.usage().cpu if opens else 0.0
            began = terminal.send(opens) if opens else terminal.started
            painted = viewer.wait_for(lambda shown, text=text: text in shown, 60)  # type: ignore[misc]
            time.sleep(SETTLING_SECONDS)
            opened, times = terminal.usage().cpu, []
            for key in itertools.islice(itertools.cycle(changing), keys):
                first = terminal.count
                pressed, last = terminal.send(key), 0.0
                while reads := terminal.reads_from(first, QUIET_SECONDS if last else 2.0):
                    first, last = first + len(reads), reads[-1].time
                if last:
                    times.append(last - pressed)
                time.sleep(random.uniform(*PAUSE_SECONDS))
            found.append((painted - began, opened - before, times, (terminal.usage().cpu - opened) / keys))
    return found


SETTLING_SECONDS = 4.0
"""Seconds after the first paint of a screen in which it reads what it shows."""

_PASSED = ("PYTHONPATH", "ACCEL_TUI_HOME", "ACCEL_TUI_SETTINGS")


def measure_slow(arguments: argparse.Namespace) -> Iterator[str]:
    """On a link of 2 KiB/s, fewer frames are sent, keys still work and memory stays constant."""
    yield "| link | size | KiB/s | frames/s | keys | answered | p50, s | max, s | RSS before, MB | after |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    with live_run.steady() as directory:
        for size in (LARGE, SMALL):
            with Terminal([ACCEL_TUI, "watch", directory], *size) as terminal:
                cells = (f"{SLOW_BYTES_PER_SECOND / KIB:.0f} KiB/s", f"{size[0]}x{size[1]}")
                yield f"| {' | '.join((*cells, *_slow(terminal, arguments.seconds)))} |"


def _slow(terminal: Terminal, seconds: float) -> tuple[str, ...]:
    """Slow down the link once the screen is complete, and request checkpoints repeatedly."""
    viewer = terminal.viewer()
    viewer.wait_for(lambda text: "loss" in text)
    time.sleep(FIRST_SCREEN_SECONDS)
    terminal.rate = SLOW_BYTES_PER_SECOND
    before = terminal.usage()
    keys, answers = 0, []
    while terminal.usage().time - before.time < seconds:
        time.sleep(random.uniform(*SLOW_PAUSE_SECONDS))
        keys += 1
        try:
            answers.append(press(terminal, viewer, CHECKPOINT, is_asked, SLOW_TIMEOUT_SECONDS).seconds)
            viewer.wait_for(lambda text: not is_asked(text), SLOW_TIMEOUT_SECONDS)
        except TimeoutError:  # a later response could belong to another key
            break
    after = terminal.usage()
    return (
        f"{(after.sent - before.sent) / KIB / (after.time - before.time):.1f}",
        f"{(after.frames - before.frames) / (after.time - before.time):.1f}",
        f"{keys}",
        f"{len(answers)}",
        f"{statistics.median(answers):.1f}" if answers else "",
        f"{max(answers):.1f}" if answers else f"over {SLOW_TIMEOUT_SECONDS:.0f}",
        f"{before.memory / MB:.0f}",
        f"{after.memory / MB:.0f}",
    )
