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


def leave_out_others(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Mark as ``campaign`` what is not drawn of the tests marked ``share``; in a campaign, all of them.

    The tests of a marked file or class are drawn together, and the cases of a marked function. The closest mark counts.
    """
    groups = defaultdict(list)
    for item in items:
        if item.get_closest_marker("campaign"):
            continue
        for node, mark in item.iter_markers_with_node("share"):
            name = f"{item.path}::{getattr(item, 'originalname', '')}" if node is item else node.nodeid
            groups[name, mark.args].append(item)
            break
    for (_, (count,)), group in groups.items():
        if config.option.markexpr != ORDINARY:
            drawn = []
        elif all_are_wanted(config):
            drawn = group
        else:
            drawn = share_of(group, count, lambda item: item.nodeid)
        for item in set(group) - set(drawn):
            item.add_marker("campaign")
