"""Following a run until it ends, whoever looks at it: a log, a bar or a script."""

import time
from typing import Protocol

from accel_engine.events import RunEnded
from accel_engine.run import RunInfo, RunReader, Status, Update
from accel_engine.run.paths import LOG, latest_checkpoint
from accel_tui.cli.interrupts import Interrupts
from accel_tui.cli.output import print_line

INTERVAL = 0.1
"""Seconds between two looks at the run."""


class ProgressView(Protocol):
    """Something that shows a run as it goes."""

    def show(self, update: Update, info: RunInfo | None = None) -> None:
        """Show what the run said since the last call, which may be nothing.

        Args:
            update: What it said.
            info: How the run stands now.
        """

    def lost(self, info: RunInfo, steps: int) -> None:
        """Show that nothing more will come, although the run did not end."""

    def clear(self) -> None:
        """Leave room for a message on standard error."""


def follow(reader: RunReader, view: ProgressView, interrupts: Interrupts | None = None) -> int:
    """Show a run until it ends.

    Args:
        reader: The run; what it has read before is not shown.
        view: What shows it.
        interrupts: What Ctrl-C does to the run; without it, Ctrl-C ends the following only.

    Returns:
        The status for the shell: 0 when the run finished or was stopped, 1 when it failed or was lost.
    """
    steps, ended = 0, None
    try:
        while True:
            info = reader.info()  # before the news, so that the last of them are not missed
            update = reader.poll()
            if update.chunks:
                steps = update.chunks[-1].first_step + update.chunks[-1].count
            ended = next((event for event in reversed(update.events) if isinstance(event, RunEnded)), ended)
            view.show(update, info)
            if not info.status.live:
                break
            for message in interrupts.act(info) if interrupts else ():
                view.clear()
                print_line(message)
            time.sleep(INTERVAL)
        if info.status is Status.LOST:
            view.lost(info, steps)
    finally:
        view.clear()
    if info.status is Status.LOST:
        print_line(_loss(info, steps))
    elif info.status is Status.FAILED and ended:
        print_line(_failure(info, ended))
    elif info.status is Status.STOPPED and interrupts and not info.script:
        print_line(f"go on with: accel-tui train --resume {info.id}")
    return int(info.status in (Status.LOST, Status.FAILED))


def _failure(info: RunInfo, ended: RunEnded) -> str:
    lines = (f"run {info.id} failed: {ended.reason}", ended.hint, f"Its log: {info.directory / 'log.txt'}")
    return "\n".join(filter(None, lines))


def _loss(info: RunInfo, steps: int) -> str:
    if info.script:
        return (
            f"the script of run {info.id} ended without a word after step {steps:,}\n"
            f"It alone knows how to go on; start it again: {info.script}"
        )
    log = info.directory / LOG
    last_words: list[str] = []
    if not steps and log.is_file():
        # An engine that never got to train says why in its log.
        last_words = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()][-1:]
    onwards = "Go on from its last checkpoint" if latest_checkpoint(info.directory) else "Start it again"
    return "\n".join(
        (
            f"the training process of run {info.id} ended without a word after step {steps:,}",
            *last_words,
            f"Its log: {log}",
            f"{onwards}: accel-tui train --resume {info.id}",
        )
    )
