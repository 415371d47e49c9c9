"""What options and arguments can be completed to; imports as little as that takes."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click
from click.shell_completion import CompletionItem

Found = Iterable[tuple[str, str]]
"""What there is, and what it is."""


def attach(parameter: click.Parameter) -> None:
    """Let a parameter be completed by what its name says that it takes, whatever its command."""
    if find := _known(parameter.name or ""):
        too = parameter.name in _FILES_TOO

        def complete(ctx: click.Context, typed: str) -> list[CompletionItem]:  # noqa: ARG001 (click's signature)
            found = [CompletionItem(value, help=about) for value, about in find() if value.startswith(typed)]
            return [CompletionItem(typed, type="file")] if too and not found else found

        parameter.shell_complete = complete  # type: ignore[method-assign, assignment]


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
    from accel_engine.run.home import runs_directory

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


_KNOWN: Mapping[str, Callable[[], Found]] = {
    "model": _entries(_models),
    "data": _entries(_data),
    "strategy": _entries(_strategies),
    **dict.fromkeys(("run", "runs", "resume"), _runs),
}
"""What there is for a parameter of each of these names, whatever its command."""

_FILES_TOO = frozenset({"model", "data"})
