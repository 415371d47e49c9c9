"""Makes the screenshots in this folder, with real screens and real runs.

Run it from the project's directory: ``.venv/bin/python screenshots/make.py [NAME...]``. It trains in a temporary
directory and writes ``NAME-THEME-WIDTHxHEIGHT.svg`` here. Names are the keys of ``SHOTS``, ``SEARCH_SHOTS`` and
``TERMINALS``, and ``serve``, a PNG from Chromium.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from textual.pilot import Pilot

from accel_engine.errors import RunError
from accel_engine.hosts.host_list import Host, add_host, remove_host
from accel_engine.hosts.runs_there import start
from accel_engine.plan import Plan
from accel_engine.run import Status, create, send_command
from accel_engine.run_queue import queue
from accel_engine.run_queue.queue import QueueRequest
from accel_tui.app import AccelApp
from browsed import capture_page
from cells import GROUND, of_screen, of_terminal
from searched import search
from svg import Row, draw
from trained import TIMEOUT, Runs, status, train, validations, wait, write_scans

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from end_to_end.terminal import Terminal  # noqa: E402

SMALL, MEDIUM, LARGE = (80, 24), (120, 40), (200, 50)
Size = tuple[int, int]


@dataclass(frozen=True)
class Shot:
    """A screenshot of the app.

    Attributes:
        opens: Chooses the run to open; ``None`` opens the form.
        steps: Keys to press, and texts in angle brackets to wait for.
        sizes: Sizes in the dark theme.
        light: Sizes in the light theme.
        is_quiet: Whether the live runs are paused meanwhile.
        has_queue: Whether runs wait in the queue meanwhile.
        has_hosts: Whether there are hosts meanwhile: this machine with other directories, and one that is not reached.
    """

    opens: Callable[[Runs], Path] | None
    steps: tuple[str, ...]
    sizes: tuple[Size, ...] = (MEDIUM,)
    light: tuple[Size, ...] = ()
    is_quiet: bool = False
    has_queue: bool = False
    has_hosts: bool = False


QUEUED = (
    Plan(model="cnn", epochs=200, xla="off", name="baseline"),
    Plan(model="cnn", epochs=200, precision="mixed_bfloat16", name="half-precision"),
    Plan(model="resnet20", data="cifar10", epochs=60, name="overnight"),
    Plan(model="mlp", epochs=30, name="after-my-own"),
    Plan(model="mlp", batch_size=256, learning_rate=3e-3, epochs=30, name="large-batch"),
)
"""The plans of the queue."""

DIAGNOSTICS = ("<Finished>", "w")

BENCH = (
    "<Finished>", "b", "<scenario>", *"10ms", "tab", "tab", "backspace", *"0.5",  # target p99, time limit
    "tab", "tab", "tab", *"float32", "enter", "ctrl+s", "<best throughput>",
)  # fmt: skip
"""Measures with a short time limit, without other precisions."""

SHOTS = {
    "new-run": Shot(None, ("<130 to 155>", "<14 layers>"), (MEDIUM, SMALL, LARGE), (MEDIUM,)),
    "run-building": Shot(lambda runs: runs.building, ("<building>",), (SMALL,)),
    "run-live": Shot(lambda runs: runs.live, ("<validation>",), (SMALL, MEDIUM, LARGE), (MEDIUM,)),
    "run-views": Shot(lambda runs: runs.live, ("<validation>", "y", "m", "m", "x", "v", "shift+left")),
    "run-chart": Shot(
        lambda runs: runs.compared[1], ("<Finished>", "f", "m", "v", *["shift+left"] * 4), light=(SMALL,)
    ),
    "run-choice": Shot(lambda runs: runs.live, ("<validation>", "a", "<as many as fit>"), (SMALL,)),
    "run-log": Shot(lambda runs: runs.failed, ("<Failed>", "slash", *"error", "enter")),
    "run-script": Shot(lambda runs: runs.script, ("<validation>", "l", "<Epoch>"), (SMALL, MEDIUM, LARGE), (MEDIUM,)),
    "run-finished": Shot(lambda runs: runs.finished, ("<Finished>",)),
    "run-failed": Shot(lambda runs: runs.failed, ("<Failed>",), (SMALL,)),
    "run-advice": Shot(lambda runs: runs.troubled, ("<⚑>",), (SMALL, MEDIUM)),
    "advice": Shot(lambda runs: runs.troubled, ("<⚑>", "A", "<Cures>"), (SMALL, MEDIUM, LARGE), (MEDIUM,)),
    "profile": Shot(
        lambda runs: runs.live,
        ("<validation>", "A", "<Looked at>", "F", "<starts>", "enter", "<idle>"),
        (SMALL, MEDIUM),
    ),
    "runs": Shot(None, ("r", "<✓>"), (SMALL, MEDIUM, LARGE), (MEDIUM,)),
    "runs-filter": Shot(None, ("r", "<✓>", "slash", *"tag:digits", "enter", "space", "space"), (MEDIUM,)),
    "queue": Shot(
        None, ("r", "<✓>", "Q", "<waiting>", "<%>", "j", "j"), (SMALL, MEDIUM, LARGE), (MEDIUM,), has_queue=True
    ),
    "hosts": Shot(
        None, ("I", "<2 of 3 hosts>", "<network>", "<lab2>", "j"), (SMALL, MEDIUM, LARGE), (MEDIUM,), has_hosts=True
    ),
    "compare": Shot(
        None,
        ("r", "<✓>", "slash", *"tag:digits", "enter", "<3 of>", "ctrl+a", "c", "<Compare 3>"),
        (SMALL, MEDIUM, LARGE),
        (MEDIUM,),
    ),
    "compare-many": Shot(
        None,
        ("r", "<✓>", "slash", *"kind:training", "enter", "<9 of>", "ctrl+a", "c", "<median>"),
        (MEDIUM, LARGE),
        (MEDIUM,),
    ),
    "compare-benches": Shot(
        None,
        ("r", "<✓>", "slash", *"kind:bench", "enter", "<2 of>", "ctrl+a", "c", "<Compare 2>"),
        (SMALL, MEDIUM, LARGE),
        (MEDIUM,),
    ),
    "bench": Shot(lambda runs: runs.finished, BENCH, (SMALL, MEDIUM, LARGE), (MEDIUM,), is_quiet=True),
    "race": Shot(None, ("<130 to 155>", "b", "<Again>"), (MEDIUM, SMALL, LARGE), (MEDIUM,), is_quiet=True),
    "diagnostics-confusion": Shot(lambda runs: runs.finished, (*DIAGNOSTICS, "<recall>"), (SMALL, MEDIUM), (MEDIUM,)),
    "diagnostics-classes": Shot(lambda runs: runs.finished, (*DIAGNOSTICS, "2", "<lowest first>"), (MEDIUM,)),
    "diagnostics-scores": Shot(lambda runs: runs.finished, (*DIAGNOSTICS, "3", "<threshold>"), (SMALL, MEDIUM)),
    "diagnostics-samples": Shot(lambda runs: runs.finished, (*DIAGNOSTICS, "4", "<highest loss>"), (MEDIUM,)),
    "diagnostics-layers": Shot(lambda runs: runs.finished, (*DIAGNOSTICS, "5", "<FLOP>"), (SMALL,)),
    "diagnostics-logged": Shot(lambda runs: runs.logged, (*DIAGNOSTICS, "<Logged>"), (SMALL, MEDIUM), (MEDIUM,)),
    "find-rate": Shot(
        None, ("F", "<What to find?>", "l", "<minimum / 10:>"), (SMALL, MEDIUM, LARGE), (MEDIUM,), is_quiet=True
    ),
    "find-size": Shot(
        None, ("F", "<What to find?>", "b", "<knee: batch size>"), (SMALL, MEDIUM), (MEDIUM,), is_quiet=True
    ),
    "evaluate": Shot(
        None,
        (
            "r",
            "<filter, e.g.>",
            "<failed>",
            "slash",
            *"kind:training first-try",
            "<1 of>",
            "enter",
            "V",
            "<most frequent>",
        ),
        (SMALL, MEDIUM),
        (MEDIUM,),
    ),
    "predict": Shot(
        lambda runs: runs.finished,
        ("<Finished>", "P", "<examples>", *"scans.npz", "enter", "<probability>"),
        (MEDIUM, SMALL, LARGE),
        (MEDIUM,),
    ),
    "export": Shot(
        lambda runs: runs.finished,
        ("<Finished>", "E", "<formats>", "s", "<verified>"),
        (SMALL, MEDIUM, LARGE),
        (MEDIUM,),
    ),
    "deploy": Shot(lambda runs: runs.finished, ("<Finished>", "D", "<latency>"), (SMALL, MEDIUM)),
    "export-form": Shot(lambda runs: runs.finished, ("<Finished>", "E", "<by format>"), (SMALL,)),
    "help": Shot(lambda runs: runs.live, ("<validation>", "question_mark", "<closes>"), (SMALL,)),
    "palette": Shot(lambda runs: runs.live, ("<validation>", "ctrl+p", *"theme", "<Save theme>"), (SMALL,)),
}
"""Screenshots of the app."""

EMPTY_SHOTS = {"runs-empty": Shot(None, ("r", "<No runs yet>"), (SMALL,))}
"""Screenshots before there is a run."""

SEARCH = ("S", "<best val accuracy>", "<loss of trial>")
"""Opens the search, which is the only one."""

SEARCH_SHOTS = {
    "search": Shot(None, SEARCH, (MEDIUM, SMALL, LARGE), (MEDIUM,)),
    "searches": Shot(None, (*SEARCH, "S", "<best so far>"), (LARGE,)),
    "search-parallel": Shot(None, (*SEARCH, "3", "<worst>"), (MEDIUM, SMALL), (MEDIUM,)),
    "search-contour": Shot(None, (*SEARCH, "6", "<over learning rate>"), (MEDIUM,), (MEDIUM,)),
    "search-importance": Shot(None, (*SEARCH, "4", "<%>"), (MEDIUM,)),
    "search-slices": Shot(None, (*SEARCH, "5", "<hidden>"), (MEDIUM,)),
    "search-best": Shot(None, (*SEARCH, "2", "<best so far>"), (MEDIUM,)),
}
"""Screenshots of a search that a script wrote."""


@dataclass(frozen=True)
class TerminalShot:
    """A screenshot of the installed program in a terminal.

    Attributes:
        arguments: Its arguments, without a run.
        waits_for: Text to wait for.
        opens: Chooses the run to append to the arguments.
        settings: Contents of the settings file.
        environment: Environment variables to set.
        size: Columns and lines.
    """

    arguments: tuple[str, ...]
    waits_for: str
    opens: Callable[[Runs], Path] | None = None
    settings: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    size: Size = SMALL


TERMINALS = {
    "run-live-ascii": TerminalShot(("watch",), "validation", lambda runs: runs.live, 'glyphs = "ascii"'),
    "run-live-nocolour": TerminalShot(
        ("watch",), "validation", lambda runs: runs.live, environment=(("NO_COLOR", "1"),)
    ),
    "run-live-16colours": TerminalShot(("watch",), "validation", lambda runs: runs.live, 'colours = "16"'),
    "run-live-contrast": TerminalShot(("watch",), "validation", lambda runs: runs.live, 'theme = "accel-contrast"'),
    "demo": TerminalShot(("demo", "--seconds", "110"), "Losses are of", size=(100, 28)),
}
"""Screenshots of the installed program in a terminal."""

BROWSED = "serve"
"""The screenshot in a browser."""


def main() -> None:
    """Train the runs, then make the named screenshots, or all."""
    everything = [*EMPTY_SHOTS, *SEARCH_SHOTS, *SHOTS, *TERMINALS, BROWSED]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help=f"one of {', '.join(everything)} (default: all)")
    wanted = parser.parse_args().name or everything
    if unknown := set(wanted).difference(everything):
        parser.error(f"unknown screenshot: {', '.join(sorted(unknown))}")
    home = Path(tempfile.gettempdir()) / "accel-tui"  # always the same, as screenshots show it
    home.mkdir(mode=0o700)
    os.environ |= {"ACCEL_TUI_HOME": str(home), "ACCEL_TUI_SETTINGS": os.devnull, "COLORTERM": "truecolor"}
    try:
        for name in wanted:
            if name in EMPTY_SHOTS:
                asyncio.run(capture(name, EMPTY_SHOTS[name], None))
        if names := [name for name in wanted if name in SEARCH_SHOTS]:
            with search():
                for name in names:
                    asyncio.run(capture(name, SEARCH_SHOTS[name], None))
        if set(wanted) <= {*EMPTY_SHOTS, *SEARCH_SHOTS}:
            return
        runs, missing = train(home), list[str]()
        write_scans(home / "scans.npz")
        with chdir(home):  # models are exported to the working directory
            for name in wanted:
                if name in SHOTS:
                    with (
                        paused(runs) if SHOTS[name].is_quiet else nullcontext(),
                        queued(runs) if SHOTS[name].has_queue else nullcontext(),
                        hosts(home) if SHOTS[name].has_hosts else nullcontext(),
                        missed_alone(name, missing),
                    ):
                        asyncio.run(capture(name, SHOTS[name], runs))
        for name in wanted:
            if name in TERMINALS and TERMINALS[name].opens:
                capture_terminal(name, TERMINALS[name], runs, home)
        if BROWSED in wanted:
            asyncio.run(capture_page(HERE / f"{BROWSED}.png", Path(sys.executable).with_name("accel-tui")))
        for live in (runs.live, runs.script):  # the demo measures speed, and needs the whole machine
            send_command(live, "stop_now")
            wait(lambda live=live: not status(live).live, "the live runs to end")
        for name in wanted:
            if name in TERMINALS and not TERMINALS[name].opens:
                capture_terminal(name, TERMINALS[name], runs, home)
        if missing:
            raise SystemExit(f"missing: {', '.join(missing)}")
    finally:
        for process in psutil.Process().children(recursive=True):
            process.kill()
        shutil.rmtree(home)


@contextmanager
def missed_alone(name: str, missing: list[str]) -> Iterator[None]:
    """Let a screen that does not show what is waited for be the only one that is missing."""
    try:
        yield
    except SystemExit as error:
        print(f"{name}: {error}", file=sys.stderr)
        missing.append(name)


@contextmanager
def paused(runs: Runs) -> Iterator[None]:
    """Pause the live runs."""
    for live in (runs.live, runs.script):
        send_command(live, "pause")
        wait(lambda live=live: status(live) is Status.PAUSED, "the live runs to pause")
    yield
    for live in (runs.live, runs.script):
        send_command(live, "resume")


@contextmanager
def queued(runs: Runs) -> Iterator[None]:
    """Let runs wait in the queue, one of which trains beside the live runs."""
    queue.set_limit(4)
    first, *others = (create(plan, queued=True) for plan in QUEUED)
    queue.enqueue(first)
    wait(lambda: status(first) is Status.RUNNING, "the queued run to start")
    requests = (
        QueueRequest(priority=5, after=(first.name,)),
        QueueRequest(),
        QueueRequest(after=(runs.failed.name,)),
        QueueRequest(priority=-1),
    )
    for directory, asked in zip(others, requests, strict=True):
        queue.enqueue(directory, asked)
    queue.hold(others[1].name)
    yield
    for entry in reversed(queue.entries()):
        queue.cancel(entry.run)
    wait(lambda: not status(first).live, "the queued run to end")


SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
case "$2" in lab*) shift 2; exec sh -c "$*";; esac
echo "ssh: connect to host $2 port 22: network is unreachable" >&2
exit 255
"""
"""Stands in for ssh: runs the command here, or reaches nothing."""


@contextmanager
def hosts(home: Path) -> Iterator[None]:
    """Let there be hosts, each with runs."""
    program = home / "ssh"
    program.write_text(SSH)
    program.chmod(0o700)
    os.environ["ACCEL_TUI_SSH"] = str(program)
    for name in ("lab1", "lab2", "far"):
        add_host(Host(name, python=sys.executable, home=str(home / name)))
    live = []
    for name, plan in (("lab1", QUEUED[0]), ("lab1", QUEUED[3]), ("lab2", QUEUED[1])):
        live.append(start(name, plan.changed())[0])
        wait(lambda: status(live[-1]) is Status.RUNNING, "a run on a host to start")
    wait(lambda: all(validations(each) for each in live), "the runs on hosts to be validated")
    yield
    for directory in live:
        with suppress(RunError):  # it has ended by itself
            send_command(directory, "stop_now")
    wait(lambda: not any(status(each).live for each in live), "the runs on hosts to end")
    for name in ("lab1", "lab2", "far"):
        remove_host(name)


async def capture(name: str, shot: Shot, runs: Runs | None) -> None:
    """Open the app, and capture a screen in all sizes and themes."""
    app = AccelApp(open_run=shot.opens(runs) if shot.opens and runs else None)
    app.animation_level = "none"
    first = (*shot.sizes, *shot.light)[0]
    async with app.run_test(size=first, notifications=False) as pilot:
        await pilot.pause(1.0)
        for step in shot.steps:
            if step.startswith("<"):
                await wait_for_text(pilot, step.strip("<>"))
            else:
                await pilot.press(step)
        for theme, sizes in (("dark", shot.sizes), ("light", shot.light)):
            if sizes:
                app.theme = f"accel-{theme}"  # a key that came too late for a field may have changed it
            for size in sizes:
                await pilot.resize_terminal(*size)
                await pilot.pause(1.5)  # for two device samples, and the new layout
                save(rows_of(app), app.theme_variables["background"], f"{name}-{theme}-{size[0]}x{size[1]}")


async def wait_for_text(pilot: Pilot[None], text: str) -> None:
    """Wait until a text is on the screen."""
    deadline = time.monotonic() + TIMEOUT
    while text not in text_of(rows_of(pilot.app)):
        if time.monotonic() > deadline:
            raise SystemExit(f"timed out waiting for {text!r} on the screen:\n{text_of(rows_of(pilot.app))}")
        await pilot.pause(0.2)


def rows_of(app: object) -> list[Row]:
    """The cells of the screen."""
    return of_screen(app.screen._compositor.render_strips())  # type: ignore[attr-defined]  # noqa: SLF001


def text_of(rows: Sequence[Row]) -> str:
    """The characters of the screen."""
    return "\n".join("".join(character for character, _ in row) for row in rows)


def capture_terminal(name: str, shot: TerminalShot, runs: Runs, home: Path) -> None:
    """Run the installed program in a terminal, and capture it."""
    settings = home / "settings.toml"
    settings.write_text(shot.settings)
    variables = {"ACCEL_TUI_SETTINGS": str(settings), "LANG": "C.UTF-8", **dict(shot.environment)}
    run = [str(shot.opens(runs))] if shot.opens else []
    columns, lines = shot.size
    program = Path(sys.executable).with_name("accel-tui")
    with Terminal([program, *shot.arguments, *run], columns=columns, rows=lines, environment=variables) as terminal:
        terminal.wait_for(shot.waits_for, timeout=TIMEOUT)
        time.sleep(2.0)  # as above
        save(of_terminal(terminal.cells), GROUND, f"{name}-{columns}x{lines}")


def save(rows: Sequence[Row], ground: str, name: str) -> None:
    """Write an SVG."""
    path = HERE / f"{name}.svg"
    path.write_text(draw(rows, ground))
    print(path.name)


if __name__ == "__main__":
    main()
