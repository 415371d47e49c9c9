"""``accel-tui doctor``: what is wrong with this machine, and what to do about it."""

import json
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

import click

from accel_engine.doctor import Check, Report, Verdict, checks, run_checks
from accel_engine.errors import UsageError
from accel_engine.registry import suggestion
from accel_engine.text import printable_fields
from accel_tui.appearance.glyphs import has_unicode
from accel_tui.cli import terminal_checks
from accel_tui.cli.output import write
from accel_tui.cli.table import NARROWEST

EPILOG = """\b
Examples:
  accel-tui doctor                        look at everything
  accel-tui doctor tensorflow terminal    look only at these
  accel-tui doctor tpu.lock --json        a finding a line, for a script

\b
Exit status:
  0  no check failed
  1  one did
  2  it was asked wrongly
"""

WIDTH = 80
"""Columns that a line takes at most, where the terminal has as many."""

MARKS = {
    Verdict.PASS: ("\N{CHECK MARK}", "+", "green"),
    Verdict.WARN: ("!", "!", "yellow"),
    Verdict.FAIL: ("\N{BALLOT X}", "x", "red"),
}
"""The mark of a verdict, in Unicode and in ASCII, and its colour."""


@click.command(epilog=EPILOG)
@click.argument("names", nargs=-1, metavar="[CHECK]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line on standard output.")
def doctor(names: Sequence[str], as_json: bool) -> int:
    """Look what is wrong with this machine, and what to do about it.

    CHECK is a check's name, or the part before the dot: python, tensorflow, nvidia, tpu, runs,
    terminal. Checks are made at the same time, each with a time limit of its own; TensorFlow is
    imported in a process apart.
    """
    chosen = _choose(names, (*checks(), *terminal_checks.checks()))
    show = _Json() if as_json else _Text([check.name for check in chosen])
    verdicts: Counter[Verdict] = Counter()
    for report in show.all(run_checks(chosen)):
        verdicts[report.finding.verdict] += 1
    return int(verdicts[Verdict.FAIL] > 0)


def _choose(names: Sequence[str], known: Sequence[Check]) -> list[Check]:
    """The checks of these names, or all of them, in their own order.

    Raises:
        UsageError: There is none of a name.
    """
    subjects = dict.fromkeys(check.name.partition(".")[0] for check in known)
    all_names = dict.fromkeys([*subjects, *(check.name for check in known)])
    for name in names:
        if name not in all_names:
            listed = textwrap.fill(", ".join(all_names), WIDTH, initial_indent="Checks: ", subsequent_indent="  ")
            near = suggestion(name, all_names)
            hint = f"; {near}" if near.startswith("did you mean") else ""
            raise UsageError(f"no check {name!r}{hint}\n{listed}")
    return [check for check in known if not names or {check.name, check.name.partition(".")[0]} & set(names)]


class _Json:
    """Shows a report a line, for scripts."""

    def all(self, reports: Iterator[Report]) -> Iterator[Report]:
        for report in reports:
            finding = report.finding
            line = {
                "check": report.check,
                "verdict": finding.verdict,
                "found": finding.summary,
                "why": finding.cause,
                "advice": finding.fix,
                "seconds": round(report.seconds, 3),
            }
            write(json.dumps(line))
            sys.stdout.flush()
            yield report


class _Text:
    """Shows a report as an aligned line, and under it why it is bad and what to do.

    Args:
        names: Of the checks, in order: they make the column's width, and say what is waited for.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._column = max(map(len, names))
        self._in_place = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._has_colour = self._in_place and not os.environ.get("NO_COLOR")
        self._has_unicode = has_unicode(os.environ, sys.stdout.encoding or "")
        self._width = min(WIDTH, _terminal_width()) if self._in_place else WIDTH

    def all(self, reports: Iterator[Report]) -> Iterator[Report]:
        verdicts: Counter[Verdict] = Counter()
        for name in self._names:
            self._wait(name)
            report = next(reports)
            self._put(report)
            verdicts[report.finding.verdict] += 1
            yield report
        parts = ((Verdict.FAIL, "failed"), (Verdict.WARN, "warned"), (Verdict.PASS, "passed"))
        counts = ", ".join(f"{verdicts[verdict]} {words}" for verdict, words in parts if verdicts[verdict])
        write(f"\n{counts}")

    def _wait(self, name: str) -> None:
        """Say which check is waited for, in the place where its line will be."""
        if self._in_place:
            write(f"  {name} ...", end="")
            sys.stdout.flush()

    def _put(self, report: Report) -> None:
        finding = printable_fields(report.finding)
        in_unicode, in_ascii, colour = MARKS[finding.verdict]
        mark = in_unicode if self._has_unicode else in_ascii
        lead = " " * (self._column + 4)
        found = _wrapped(finding.summary, max(self._width - len(lead), NARROWEST)) or [""]
        first = f" {report.check:{self._column}}  {found[0]}"
        lines = [first.rstrip(), *(f"{lead}{line}" for line in found[1:])]
        lines += self._indented("why", finding.cause) + self._indented("do", finding.fix)
        erase = "\r\x1b[K" if self._in_place else ""
        text = "\n".join(lines if self._has_unicode else map(_plain, lines))
        write(text, control=erase + self._coloured(mark, colour))
        sys.stdout.flush()

    def _indented(self, label: str, text: str) -> list[str]:
        lead = f"    {label}:".ljust(9)
        return _wrapped(text, self._width, lead, " " * 9) if text else []

    def _coloured(self, mark: str, colour: str) -> str:
        return click.style(mark, fg=colour) if self._has_colour else mark


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _plain(text: str) -> str:
    return text.encode("ascii", "replace").decode()


def _terminal_width() -> int:
    return terminal_checks.Terminal.here().size[0]
