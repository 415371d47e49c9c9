"""Shares: of tests that are alike, a run takes one in so many, and draws others after each change of the program."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

ORDINARY = "not campaign"
"""Marks of the tests of an ordinary run, as in ``pyproject.toml``."""

TRAINING, TRAINING_SHARE = "gym", 4
"""The fixture of tests that train in their own process, most of which take 1 to 2 s of processor time."""

FOLDERS = {"tests/engine/engine_main/": 3, "tests/engine/recording/": 2, "tests/tui/screens/": 3}
"""Folders of tests that start engine processes, scripts or the app, with their shares."""

Value = TypeVar("Value")


def code_digest() -> str:
    digest = hashlib.sha256()
    for package in ("engine", "tui"):
        for path in sorted((Path(__file__).parents[1] / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


SEED = os.environ.get("SHARE") or code_digest()
"""What draws: the program's code, so that all processes draw alike, or ``SHARE``, of which ``all`` means all tests."""


def share_of(values: Sequence[Value], count: int, name: Callable[[Value], str] = str) -> list[Value]:
    """Draw one in ``count`` of the values, at least one."""
    ranks = {name(value): hashlib.sha256(f"{SEED} {name(value)}".encode()).digest() for value in values}
    return sorted(values, key=lambda value: ranks[name(value)])[: max(1, round(len(values) / count))]


def all_are_wanted(config: pytest.Config) -> bool:
    """Whether somebody asked for all tests, or chose them: by a file, an id, words, or because they failed."""
    by_file = any(Path(arg.partition("::")[0]).suffix == ".py" for arg in config.args)
    return SEED == "all" or by_file or bool(config.option.keyword) or config.getoption("lf", default=False)


def _group(item: pytest.Item) -> tuple[object, int]:
    for node, mark in item.iter_markers_with_node("share"):
        return (f"{item.path}::{getattr(item, 'originalname', '')}" if node is item else node.nodeid), *mark.args
    if TRAINING in getattr(item, "fixturenames", ()):
        return (item.path, TRAINING), TRAINING_SHARE
    return item.path, next((count for folder, count in FOLDERS.items() if item.nodeid.startswith(folder)), 1)


def leave_out_others(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Mark as ``campaign`` what is not drawn of the tests that are alike; in a campaign, all that may be left out.

    The tests of a file or class marked ``share`` are drawn together, the cases of a marked function, and those tests of
    a file that train or are in one of ``FOLDERS``. The closest mark counts.
    """
    groups = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("campaign"):
            groups[_group(item)].append(item)
    for (_, count), group in groups.items():
        if config.option.markexpr == ORDINARY:
            drawn = group if all_are_wanted(config) else share_of(group, count, lambda item: item.nodeid)
        else:
            drawn = group if count == 1 else []
        for item in set(group) - set(drawn):
            item.add_marker("campaign")
