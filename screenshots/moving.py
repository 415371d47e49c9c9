"""Makes ``training.svg``, the moving picture of the README: the real dashboard trains, from the form to the result.

Run it from the project's directory: ``.venv/bin/python screenshots/moving.py``. It trains in a temporary directory. The
picture plays by CSS alone, without scripts and fonts, and shows its last frame where nothing moves.
"""

import asyncio
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from textual.pilot import Pilot

from accel_tui.app import AccelApp
from make import HERE, rows_of, text_of, wait_for_text
from svg import HIGH, STYLE, WIDE, Row, draw_row

SIZE = (100, 30)
"""Columns and lines."""

PERIOD = 0.3
"""Seconds between two frames of the training."""

LONGEST, WAITING = 0.5, 0.1
"""Seconds that a frame of the training, or one before its first step, is shown at most: a busy machine begins late."""

TRAINING_SECONDS = 20.0
"""Seconds of the whole training at most: on a busy machine it is played faster than it was."""

FORM_SECONDS, RESULT_SECONDS = 2.4, 3.5
"""Seconds of what is to be read: the form, and each result."""

TILE = 10
"""Columns of a part of a row; a part that does not change is in the file once."""


@dataclass(frozen=True)
class Frame:
    """The screen, and how long it is shown in seconds."""

    rows: Sequence[Row]
    seconds: float


def main() -> None:
    """Record the frames, and write the picture."""
    home = Path(tempfile.gettempdir()) / "accel-tui"  # always the same, as the screen shows it
    home.mkdir(mode=0o700)
    os.environ |= {"ACCEL_TUI_HOME": str(home), "ACCEL_TUI_SETTINGS": os.devnull, "COLORTERM": "truecolor"}
    try:
        frames, ground = asyncio.run(record())
    finally:
        for process in psutil.Process().children(recursive=True):
            process.kill()
        shutil.rmtree(home)
    path = HERE / "training.svg"
    path.write_text(moving(frames, ground))
    total = sum(frame.seconds for frame in frames)
    print(f"{path.name}: {len(frames)} frames, {total:.1f} s, {path.stat().st_size:,} bytes")


async def record() -> tuple[list[Frame], str]:
    """Train the default plan in the dashboard; returns the frames and the background."""
    app = AccelApp()
    async with app.run_test(size=SIZE, notifications=False) as pilot:
        await wait_for_text(pilot, "130 to 155")
        await pilot.pause(2.0)  # for the first device samples
        frames = [Frame(rows_of(app), FORM_SECONDS)]
        await pilot.press("s")
        trained = [frame async for frame in training(pilot)]
        faster = max(sum(frame.seconds for frame in trained) / TRAINING_SECONDS, 1.0)
        frames += [Frame(frame.rows, frame.seconds / faster) for frame in trained]
        await wait_for_text(pilot, "0 running")  # the badge is read every few seconds
        frames.append(Frame(rows_of(app), RESULT_SECONDS))
        await pilot.press("w")
        await wait_for_text(pilot, "recall")
        frames.append(Frame(rows_of(app), RESULT_SECONDS))
        await pilot.press("4")
        await wait_for_text(pilot, "highest loss")
        await pilot.pause(0.5)
        frames.append(Frame(rows_of(app), RESULT_SECONDS))
        whole = [frame for frame in frames if len(frame.rows) == SIZE[1]]  # others were not laid out yet
        return whole, app.theme_variables["background"]


async def training(pilot: Pilot[None]) -> AsyncIterator[Frame]:
    """The frames until the run has finished."""
    shown, since = rows_of(pilot.app), time.monotonic()
    while "Finished after" not in text_of(shown):
        await pilot.pause(PERIOD)
        rows, now = rows_of(pilot.app), time.monotonic()
        is_waiting = "waiting for the first step" in text_of(shown)
        yield Frame(shown, min(now - since, WAITING if is_waiting else LONGEST))
        shown, since = rows, now


def moving(frames: Sequence[Frame], ground: str) -> str:
    """Draw frames as one SVG in which each part of a row is shown when it is on the screen."""
    wide, high = SIZE[0] * WIDE, SIZE[1] * HIGH
    total = sum(frame.seconds for frame in frames)
    starts = [sum(frame.seconds for frame in frames[:number]) / total for number in range(len(frames) + 1)]
    parts, names = list[str](), dict[tuple[int, int], str]()
    for top, left, first, stop, drawn in _parts(frames, ground):
        place = f' transform="translate({left * WIDE} {top * HIGH})"'
        if (first, stop) == (0, len(frames)):
            parts.append(f"<g{place}>{drawn}</g>")
        else:
            name = names.setdefault((first, stop), f"f{len(names)}")
            last = " z" if stop == len(frames) else ""
            parts.append(f'<g class="f {name}{last}"{place}>{drawn}</g>')
    rules = "".join(_rule(name, starts[first], starts[stop]) for (first, stop), name in names.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -10 {wide + 20} {high + 20}" width="{wide + 20}">'
        f"<style>{STYLE}.f{{visibility:hidden;animation:{total:.1f}s step-end infinite}}.z{{visibility:visible}}{rules}"
        "@media (prefers-reduced-motion:reduce){.f{animation:none}}</style>"
        f'<rect x="-10" y="-10" width="{wide + 20}" height="{high + 20}" fill="{ground}"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _rule(name: str, start: float, stop: float) -> str:
    """The style rules of what is shown from one time to another, as shares of the whole."""
    first = "" if start == 0 else "0%{visibility:hidden}"
    last = "" if stop >= 1 else f"{100 * stop:.2f}%{{visibility:hidden}}"
    end = "visible" if stop >= 1 else "hidden"
    return (
        f"@keyframes {name}{{{first}{100 * start:.2f}%{{visibility:visible}}{last}to{{visibility:{end}}}}}"
        f".{name}{{animation-name:{name}}}"
    )


def _parts(frames: Sequence[Frame], ground: str) -> Iterator[tuple[int, int, int, int, str]]:
    """The parts of rows: row, column, first frame, the frame after the last, and the drawing."""
    for top in range(SIZE[1]):
        for left in range(0, SIZE[0], TILE):
            drawn = ["".join(draw_row(frame.rows[top][left : left + TILE], 0, ground)) for frame in frames]
            shown: dict[str, list[tuple[int, int]]] = defaultdict(list)
            first = 0
            for number in range(1, len(drawn) + 1):
                if number == len(drawn) or drawn[number] != drawn[first]:
                    shown[drawn[first]].append((first, number))
                    first = number
            for content, spans in shown.items():
                for first, stop in spans if content else ():
                    yield top, left, first, stop, content


if __name__ == "__main__":
    main()
