"""Shell completion of models, data, runs, searches and checks; imports as little as possible."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from pkgutil import resolve_name

import click
from click.shell_completion import CompletionItem

from accel_engine.text import printable_line

Candidates = Iterable[tuple[str, str]]
"""Values with their descriptions."""

MAX_NAMED = 100
"""The number of runs searched by name when no id matches; reading one takes about a millisecond."""


def attach(parameter: click.Parameter) -> None:
    """Add completion to a parameter, chosen by its name."""
    if source := _source_of(parameter.name or ""):
        accepts_files = _accepts_files(parameter.name or "")

        def complete(ctx: click.Context, typed: str) -> list[CompletionItem]:  # noqa: ARG001 (click's signature)
            found = _items(pair for pair in source() if pair[0].startswith(typed))
            if not found and source in (_runs, _runs_and_searches):
                found = _items(_named(typed))
            return [CompletionItem(typed, type="file")] if accepts_files and not found else found

        parameter.shell_complete = complete  # type: ignore[method-assign, assignment]


def _items(found: Candidates) -> list[CompletionItem]:
    """Make completion items, without control characters."""
    clean = (pair for pair in found if pair[0] == printable_line(pair[0]))
    return [CompletionItem(value, help=printable_line(description)) for value, description in clean]


def _source_of(name: str) -> Callable[[], Candidates] | None:
    if name in _SOURCES:
        return _SOURCES[name]
    from accel_engine.plan import WORDS

    return partial(_values, name) if name in WORDS else None


def _values(field: str) -> Candidates:
    """The values of a plan field, as far as they are known."""
    from accel_engine.plan import SPECS, WORDS

    words = WORDS[field]
    yield from words.suggestions
    yield from ((choice, "") for choice in SPECS[field].choices)
    if words.catalogue:
        yield from ((name, entry.summary) for name, entry in resolve_name(f"{words.catalogue}:CATALOGUE").items())


def _accepts_files(name: str) -> bool:
    """Whether a value that is not a candidate may be a path."""
    from accel_engine.plan import PATH_FIELDS

    return name == "plan_or_run" or name in PATH_FIELDS


def _runs() -> Candidates:
    """The ids of runs, newest first; the directories are listed but not read, which would be slow."""
    from accel_engine.run.directory.run_paths import runs_directory

    def age(directory: Path) -> float:
        try:
            return -directory.stat().st_mtime
        except OSError:
            return 0.0

    yield "last", "the newest run"
    if runs_directory().is_dir():
        for directory in sorted(runs_directory().iterdir(), key=age):
            if directory.is_dir():
                yield directory.name, ""


def _runs_and_searches() -> Candidates:
    """The ids of runs, and the names of searches that run."""
    from accel_engine.run.directory.lock import is_locked
    from accel_engine.search.study_paths import LOCK, studies

    yield from _runs()
    yield from ((study.name, "a search") for study in studies() if is_locked(study, LOCK))


def _named(typed: str) -> Candidates:
    """The names that start with ``typed``, or the ids where a shell would split the name into words."""
    from accel_engine.run.directory.run_paths import runs_directory
    from accel_engine.run.runs.listing import summarize

    newest = [run for run, description in _runs() if not description][:MAX_NAMED]
    for info in (summarize(runs_directory() / run).info for run in newest):
        if info and info.name.startswith(typed):
            is_one_word = shlex.quote(info.name) == info.name
            yield (info.name, info.id) if is_one_word else (info.id, info.name)


def _checks() -> Candidates:
    from accel_engine.doctor import checks_of
    from accel_tui.cli import terminal_checks

    names = [check.name for check in (*checks_of(), *terminal_checks.checks())]
    return ((name, "") for name in dict.fromkeys([name.partition(".")[0] for name in names] + names))


_SOURCES: Mapping[str, Callable[[], Candidates]] = {
    "check_names": _checks,
    "run_or_search": _runs_and_searches,
    **dict.fromkeys(("run", "runs", "resume", "start_from", "plan_or_run", "after"), _runs),
}
"""The candidates by the name of a parameter that is not a field of a plan, in any command."""
