"""``accel-tui advise``: the troubles of runs, with evidence and cures."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel_engine.advice import Cure, Finding, find_cure, find_troubles
from accel_engine.errors import PlanError, RunError
from accel_engine.plan.changed_plan import options_text
from accel_engine.run import RunInfo, find_run
from accel_engine.words import numbers
from accel_tui.cli.options import FiniteNumber
from accel_tui.cli.output import json_option, paragraph, print_to_stderr, terminal_columns, write, write_json
from accel_tui.formatting.advice import (
    capitalized,
    change_command,
    coverage_text,
    cure_text,
    evidence_text,
    failures_text,
    missing_text,
)
from accel_tui.run_state.advice import Advice, read_advice

if TYPE_CHECKING:  # its imports are slow
    from accel_engine.advice.cures.apply_cure import AppliedCure

EPILOG = """\b
Examples:
  accel-tui advise last
  accel-tui advise $(accel-tui runs --filter tag:paper --json | jq -r .run)
  accel-tui advise last --json | jq -r '.findings[].title'
  accel-tui advise last --try overfitting --cure 2
  accel-tui advise last --apply overfitting --cure 2
  accel-tui advise last --undo

\b
Exit status:
  0  the runs were read, whether or not there are findings
  1  a run could not be read
  2  wrong usage, or there is no such run
"""

LABELS = 12
"""Columns of the labels of a finding."""

MIN_WIDTH = 40
"""The minimum width of the text; on a narrower terminal, lines are longer than it."""


@click.command(epilog=EPILOG)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--try", "tried", metavar="ID", help="Try a cure of this finding: train with and without it, in turns.")
@click.option("--apply", "applied", metavar="ID", help="Apply a cure of this finding to the run.")
@click.option("--undo", is_flag=True, help="Take back the cure that was applied last.")
@click.option("--cure", type=click.IntRange(1), metavar="N", help="Which of its cures with options.  [default: 1]")
@click.option("--seconds", type=FiniteNumber(1), metavar="S", help="How long to take turns, about.  [default: 10]")
@json_option
def advise(
    runs: tuple[str, ...],
    tried: str | None,
    applied: str | None,
    undo: bool,
    cure: int | None,
    seconds: float | None,
    as_json: bool,
) -> int:
    """Say why a RUN is slow, short of memory or learns badly, and what to do about it.

    Each finding has its evidence, what it costs, and cures with the gain to expect. Nothing is found in a healthy
    run. RUN may be live, ended, recorded by a script or imported; nothing is written to it without --apply or --undo.
    """
    directories = list(dict.fromkeys([find_run(run) for run in runs]))
    _check_options(len(directories), {"--try": tried, "--apply": applied, "--undo": undo}, cure, seconds)
    if tried:
        _print_cure_trial(directories[0], tried, cure or 1, seconds or 10.0, as_json=as_json)
        return 0
    if applied:
        _apply_cure(directories[0], applied, cure or 1, as_json=as_json)
        return 0
    if undo:
        _undo_cure(directories[0], as_json=as_json)
        return 0
    return _print_advice(directories, as_json=as_json)


def _check_options(runs: int, actions: Mapping[str, object], cure: int | None, seconds: float | None) -> None:
    given = [name for name, value in actions.items() if value]
    if len(given) > 1:
        raise click.UsageError(f"give {' or '.join(given)}, not both")
    if given and runs > 1:
        raise click.UsageError(f"{given[0]} needs a single run")
    if cure is not None and not (actions["--try"] or actions["--apply"]):
        raise click.UsageError("--cure needs --try or --apply")
    if seconds is not None and not actions["--try"]:
        raise click.UsageError("--seconds needs --try")


def _print_advice(directories: Sequence[Path], *, as_json: bool) -> int:
    """Print the advice on runs; the exit status."""
    status = 0
    for index, directory in enumerate(directories):
        try:
            advice = read_advice(directory)
        except RunError as error:
            print_to_stderr(str(error))
            status = 1
            continue
        if as_json:
            write_json(_to_json(advice))
        else:
            write("\n" * bool(index and advice.findings), end="")
            write("\n".join(_lines(advice, terminal_columns())))
    return status


def _lines(advice: Advice, width: int) -> Iterator[str]:
    """The advice on a run, in lines of some columns."""
    if advice.info.bench:
        yield f"{advice.info.id} is a bench: only training is judged."
        return
    if not advice.coverage.steps and not advice.findings and not advice.failed:
        yield f"{advice.info.id}: nothing found, as there are no steps to judge."
        return
    found = numbers.counted(len(advice.findings), "finding") if advice.findings else "nothing found"
    words = [f"{advice.info.id}: {found} in {coverage_text(advice.coverage)}.", missing_text(advice.coverage)]
    text = " ".join([*words, failures_text(advice.failed)])
    yield from textwrap.wrap(text, max(width, MIN_WIDTH), break_on_hyphens=False)
    for number, finding in enumerate(advice.findings, 1):
        yield ""
        yield from _finding_lines(number, finding, advice, width)


def _finding_lines(number: int, finding: Finding, advice: Advice, width: int) -> Iterator[str]:
    yield f"{number}. {finding.title} ({finding.id})"
    rows = [("evidence", evidence_text(each)) for each in finding.evidence]
    rows += [("category", f"{finding.category}, {finding.confidence}"), ("cost", finding.cost)]
    for index, cure in enumerate(finding.cures):
        rows += _cure_rows("or" if index else "cure", cure, advice)
    before = ""
    for label, text in rows:
        yield from _row("" if label == before else label, text, width)
        before = label


def _cure_rows(label: str, cure: Cure, advice: Advice) -> list[tuple[str, str]]:
    rows = [(label, cure_text(cure, advice.info))]
    if cure.changes and advice.info.has_engine:
        options = options_text(cure.changes)
        rows += [("option", options)] if options not in cure.text else []
    if cure.gain:
        rows.append(("gain", f"{cure.gain.text}, by {cure.gain.basis}"))
    return rows


def _row(label: str, text: str, width: int) -> list[str]:
    """A label, and its text beside it."""
    indent = " " * (3 + LABELS)
    lines = textwrap.wrap(text, max(width - len(indent), MIN_WIDTH), break_long_words=False, break_on_hyphens=False)
    return [f"   {label:{LABELS}}{lines[0]}", *(indent + line for line in lines[1:])] if lines else []


def _to_json(advice: Advice) -> dict[str, Any]:
    info, seen = advice.info, advice.coverage
    return {
        "run": info.id,
        "directory": str(info.directory),
        "kind": info.kind,
        "status": str(info.status),
        "findings": [_finding_to_json(finding, advice) for finding in advice.findings],
        "looked_at": {
            "steps": seen.steps,
            "epochs": seen.epochs,
            "validations": seen.validations,
            "readings": seen.readings,
        },
        "not_judged": seen.missing,
        "failed_rules": advice.failed,
    }


def _finding_to_json(finding: Finding, advice: Advice) -> dict[str, Any]:
    return {
        "id": finding.id,
        "category": str(finding.category),
        "title": finding.title,
        "confidence": str(finding.confidence),
        "weight": finding.weight,
        "cost": finding.cost,
        "evidence": [
            {"text": each.text, "series": each.series, "steps": each.steps and list(each.steps)}
            for each in finding.evidence
        ],
        "cures": [
            {
                "text": cure_text(cure, advice.info),
                "changes": dict(cure.changes),
                "command": _command(cure, advice.info),
                "gain": cure.gain and asdict(cure.gain),
            }
            for cure in finding.cures
        ],
    }


def _command(cure: Cure, info: RunInfo) -> str | None:
    """The command that trains with a cure, empty if it has none; ``None`` if the plan cannot have its changes."""
    try:
        return change_command(info, cure.changes)
    except PlanError:
        return None


def _found(directory: Path, finding: str, number: int) -> tuple[Finding, Cure]:
    """Find a finding by its id, and one of its cures that change the plan.

    Raises:
        AccelError: There is no such finding or cure, or the run cannot be read.
    """
    from accel_engine.race.remembered_races import read_with_races  # its imports are slow

    return find_cure(directory.name, find_troubles(read_with_races(directory), []), finding, number)


def _print_cure_trial(directory: Path, finding: str, number: int, seconds: float, *, as_json: bool) -> None:
    """Train some seconds with and without a cure, and print what it gains.

    Args:
        directory: The run's directory.
        finding: The finding's id.
        number: Which of its cures that change the plan, from 1.
        seconds: How long both train, about.
        as_json: Whether to print JSON.

    Raises:
        AccelError: There is no such finding or cure, or it cannot be tried.
    """
    from accel_engine.advice.cures import cure_task  # see _found
    from accel_engine.race import cure_race
    from accel_tui.cli.race import configuration_values, results_page
    from accel_tui.formatting.race import cure_verdict

    (found, cure), shown = _found(directory, finding, number), _Progress()
    raced = cure_race.try_cure(
        directory,
        cure.changes,
        lambda reached: shown.show(reached.detail),
        seconds=seconds,
        quantity=cure_task.PURPOSES[found.category],
    )
    if as_json:
        write_json(
            {
                "run": directory.name,
                "finding": finding,
                "compared": raced.quantity.value,
                "is_better": raced.is_better,
                "how": raced.how,
                "configurations": [configuration_values(each) for each in raced.results],
            }
        )
    else:
        how = paragraph(f"{capitalized(raced.how)}.")
        write("\n".join([*results_page(raced.results), how, "", cure_verdict(raced)]))


def _apply_cure(directory: Path, finding: str, number: int, *, as_json: bool) -> None:
    """Apply a cure to a run, and print what was done."""
    from accel_engine.advice.cures import apply_cure  # see _found

    _, cure = _found(directory, finding, number)
    _print_change(directory, apply_cure.apply(directory, cure.changes, finding=finding), as_json=as_json)


def _undo_cure(directory: Path, *, as_json: bool) -> None:
    """Take the last cure of a run back, and print what was done."""
    from accel_engine.advice.cures import apply_cure  # see _found

    _print_change(directory, apply_cure.undo(directory), as_json=as_json)


def _print_change(directory: Path, done: "AppliedCure", *, as_json: bool) -> None:
    if as_json:
        changes = {"changes": dict(done.changes), "before": dict(done.before)}
        write_json({"run": directory.name, "how": str(done.method), **changes, "text": done.text})
    else:
        write(done.text)


class _Progress:
    """Prints each step of an action once."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, text: str) -> None:
        """Print a text to standard error, unless it was the last one."""
        if text != self._last:
            self._last = text
            print_to_stderr(text)
