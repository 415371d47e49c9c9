"""What options and arguments can be completed to; imports as little as that takes."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from accel_engine.text import printable_line

Found = Iterable[tuple[str, str]]
"""What there is, and what it is."""

NAMED = 100
"""How many runs are looked through for a name, where no id fits: to read each takes a millisecond."""


def attach(parameter: click.Parameter) -> None:
    """Let a parameter be completed by what its name says that it takes, whatever its command."""
    if find := _known(parameter.name or ""):
        too = parameter.name in _FILES_TOO

        def complete(ctx: click.Context, typed: str) -> list[CompletionItem]:  # noqa: ARG001 (click's signature)
            found = _items(pair for pair in find() if pair[0].startswith(typed))
            if not found and find is _runs:
                found = _items(_named(typed))
            return [CompletionItem(typed, type="file")] if too and not found else found

        parameter.shell_complete = complete  # type: ignore[method-assign, assignment]


def _items(found: Found) -> list[CompletionItem]:
    """What a shell is given to show and to put in: nothing that the terminal would obey."""
    return [
        CompletionItem(value, help=printable_line(about)) for value, about in found if value == printable_line(value)
    ]


def _known(name: str) -> Callable[[], Found] | None:
    if name in _KNOWN:
        return _KNOWN[name]
    from accel_engine.plan import SPECS

    choices = SPECS[name].choices if name in SPECS else ()
    return (lambda: ((choice, "") for choice in choices)) if choices else None


def _entries(load: Callable[[], Mapping[str, object]]) -> Callable[[], Found]:
    return lambda: ((name, str(getattr(entry, "summary", ""))) for name, entry in load().items())


def _models() -> Mapping[str, object]:
    from accel_engine.models import CATALOGUE

    return CATALOGUE


def _data() -> Mapping[str, object]:
    from accel_engine.data import CATALOGUE

    return CATALOGUE


def _strategies() -> Mapping[str, object]:
    from accel_engine.strategies import CATALOGUE

    return CATALOGUE


def _runs() -> Found:
    """The ids of runs by the names of their directories, newest first: to read each would take long."""
    from accel_engine.run.paths import runs_directory

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


def _named(typed: str) -> Found:
    """Runs whose name begins so: that name, or the id where a shell would take the name for several words."""
    from accel_engine.run.listing import summarize
    from accel_engine.run.paths import runs_directory

    newest = [run for run, about in _runs() if not about][:NAMED]
    for info in (summarize(runs_directory() / run).info for run in newest):
        if info and info.name.startswith(typed):
            whole = shlex.quote(info.name) == info.name
            yield (info.name, info.id) if whole else (info.id, info.name)


def _checks() -> Found:
    from accel_engine.doctor import checks
    from accel_tui.cli import terminal_checks

    names = [check.name for check in (*checks(), *terminal_checks.checks())]
    return ((name, "") for name in dict.fromkeys([name.partition(".")[0] for name in names] + names))


_KNOWN: Mapping[str, Callable[[], Found]] = {
    "model": _entries(_models),
    "data": _entries(_data),
    "strategy": _entries(_strategies),
    "names": _checks,
    **dict.fromkeys(("run", "runs", "resume"), _runs),
}
"""What there is for a parameter of each of these names, whatever its command."""

_FILES_TOO = frozenset({"model", "data"})
