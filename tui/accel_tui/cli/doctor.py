"""``accel-tui doctor``: checks this machine and suggests fixes."""

import os
import platform
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import click
from rich.text import Text

from accel_engine.doctor import DEEP_CHECKS, Check, CheckReport, CheckResult, checks_of, run_checks
from accel_engine.doctor.check_inputs import installed_version
from accel_engine.doctor.tensorflow_checks import installed_packages
from accel_engine.errors import UsageError
from accel_engine.text import printable_fields, suggestion
from accel_engine.version import __version__
from accel_engine.words import numbers
from accel_tui.appearance.glyphs import has_unicode
from accel_tui.cli import terminal_checks
from accel_tui.cli.live import LiveArea, cut_line, is_live
from accel_tui.cli.output import MIN_WIDTH, json_option, write, write_json

EPILOG = """\b
Examples:
  accel-tui doctor                        run all checks
  accel-tui doctor tensorflow terminal    run only these
  accel-tui doctor --deep                 let every device compute, too
  accel-tui doctor tpu.lock --json        one finding per line, for a script

\b
Exit status:
  0  no check failed
  1  a check failed
  2  wrong usage
"""

WIDTH = 80
"""The maximum width of a line, in cells."""

SYMBOLS = {
    CheckResult.SKIP: ("\N{EN DASH}", "-", "dim"),
    CheckResult.PASS: ("\N{CHECK MARK}", "+", "green"),
    CheckResult.WARN: ("!", "!", "yellow"),
    CheckResult.FAIL: ("\N{BALLOT X}", "x", "red"),
}
"""The symbol of a verdict, in Unicode and in ASCII, and its colour."""


@click.command(epilog=EPILOG)
@click.argument("check_names", nargs=-1, metavar="[CHECK]...")
@click.option("--deep", is_flag=True, help="Let every device compute, too, which takes up to a minute.")
@json_option
def doctor(check_names: Sequence[str], deep: bool, as_json: bool) -> int:
    """Diagnose this machine and suggest fixes.

    CHECK is the name of a check, or the part before the dot: python, tensorflow, nvidia, tpu,
    system, workers, runs, terminal. Checks run in parallel, each with its own time limit.
    TensorFlow is imported in a separate process.
    """
    deep = deep or any(check in check_names for check, *_ in DEEP_CHECKS)
    chosen = _choose(check_names, (*checks_of(deep=deep), *terminal_checks.checks()))
    show = _Json() if as_json else TextReports([check.name for check in chosen])
    verdicts: Counter[CheckResult] = Counter()
    for report in show.all(run_checks(chosen)):
        verdicts[report.finding.verdict] += 1
    return int(verdicts[CheckResult.FAIL] > 0)


def _choose(chosen: Sequence[str], known: Sequence[Check]) -> list[Check]:
    """Select checks by name, all of them without a name, in their usual order.

    Raises:
        UsageError: A name is unknown.
    """
    subjects = dict.fromkeys(check.name.partition(".")[0] for check in known)
    all_names = dict.fromkeys([*subjects, *(check.name for check in known)])
    for name in chosen:
        if name not in all_names:
            listed = textwrap.fill(", ".join(all_names), WIDTH, initial_indent="Checks: ", subsequent_indent="  ")
            near = suggestion(name, all_names)
            hint = f"; {near}" if near.startswith("did you mean") else ""
            raise UsageError(f"no check {name!r}{hint}\n{listed}")
    return [check for check in known if not chosen or {check.name, check.name.partition(".")[0]} & set(chosen)]


def versions() -> str:
    """The version of accel-tui and a line for each dependency, without importing the packages."""
    tensorflow = ", ".join(f"{name} {version}" for name, version in installed_packages().items())
    rows = {
        "python": f"{platform.python_version()}, {platform.python_implementation()}",
        "system": platform.platform(),
        "tensorflow": tensorflow or "not installed",
        **{name: installed_version(name) or "not installed" for name in ("keras", "textual")},
        "terminal": str(terminal_checks.Terminal.here()),
    }
    return "\n".join([f"accel-tui {__version__}", *(f"{name:12}{value}" for name, value in rows.items())])


class _Json:
    """Shows one JSON object per report."""

    def all(self, reports: Iterator[CheckReport]) -> Iterator[CheckReport]:
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
            write_json(line)
            sys.stdout.flush()
            yield report


class TextReports:
    """Shows a report as an aligned line, with its cause and fix below.

    Args:
        names: The names of the checks, in order.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._column = max(map(len, names))
        self._live = LiveArea(sys.stdout) if is_live(sys.stdout) else None
        self._has_unicode = has_unicode(os.environ, sys.stdout.encoding or "")
        self._width = min(WIDTH, self._live.width) if self._live else WIDTH

    def all(self, reports: Iterator[CheckReport]) -> Iterator[CheckReport]:
        """Show reports as they come, and how many there are of each kind; yield each."""
        verdicts: Counter[CheckResult] = Counter()
        last: CheckReport | None = None
        same = 0
        for name in self._names:
            self._show_running(name)
            report = next(reports)
            if last is not None and _is_like(report, last):
                same += 1
            else:
                self._print_same(same)
                self._print(report)
                last, same = report, 0
            verdicts[report.finding.verdict] += 1
            yield report
        self._print_same(same)
        texts = (
            (CheckResult.FAIL, "{} failed".format),
            (CheckResult.WARN, partial(numbers.counted, noun="warning")),
            (CheckResult.PASS, "{} passed".format),
            (CheckResult.SKIP, "{} not needed or not checked".format),
        )
        counts = ", ".join(text(verdicts[result]) for result, text in texts if verdicts[result])
        write(f"\n{counts}")

    def _show_running(self, name: str) -> None:
        """Show the name of the running check where its result will be."""
        if self._live:
            self._live.show(cut_line(f"  {name} ..."))

    def _print_same(self, count: int) -> None:
        """Print how many more checks of the subject said the same."""
        if count:
            self._print_lines("", f"{' ' * (self._column + 4)}{numbers.counted(count, 'more check')}: the same")

    def _print(self, report: CheckReport) -> None:
        finding = printable_fields(report.finding)
        in_unicode, in_ascii, colour = SYMBOLS[finding.verdict]
        symbol = in_unicode if self._has_unicode else in_ascii
        lead = " " * (self._column + 4)
        found = _wrapped(finding.summary, max(self._width - len(lead), MIN_WIDTH)) or [""]
        first = f" {report.check:{self._column}}  {found[0]}"
        lines = [first.rstrip(), *(f"{lead}{line}" for line in found[1:])]
        lines += self._indented("cause", finding.cause) + self._indented("fix", finding.fix)
        text = "\n".join(lines if self._has_unicode else map(_plain, lines))
        self._print_lines(symbol, text, colour)

    def _print_lines(self, symbol: str, text: str, colour: str = "") -> None:
        if self._live:
            self._live.show(None, [Text.assemble((symbol, colour), text)])
        else:
            write(f"{symbol}{text}")
            sys.stdout.flush()

    def _indented(self, label: str, text: str) -> list[str]:
        lead = f"    {label}:".ljust(11)
        return _wrapped(text, self._width, lead, " " * 11) if text else []


def _is_like(report: CheckReport, other: CheckReport) -> bool:
    """Whether two checks of a subject have passed, or were skipped, with the same words."""
    subject, of_other = (each.check.partition(".")[0] for each in (report, other))
    return report.finding.verdict in (CheckResult.PASS, CheckResult.SKIP) and (subject, report.finding) == (
        of_other,
        other.finding,
    )


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Lines of a text; a path or command that is wider than a line stays whole, so that it can be copied."""
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False
    )


def _plain(text: str) -> str:
    return text.encode("ascii", "replace").decode()
