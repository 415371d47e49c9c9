from functools import partial
from pathlib import Path

import psutil
import pytest

from accel_engine import memory
from accel_engine.control_groups import own_groups


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(memory, "own_groups", partial(own_groups, groups=tmp_path, own=tmp_path / "own"))
    return tmp_path


def limit(group: Path, prefix: str, names: tuple[str, str], values: tuple[str, str]) -> None:
    group.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, values, strict=True):
        (group / name).write_text(value + "\n")
    caches = f"{prefix}inactive_file 300\n{prefix}active_file 20\n{prefix}slab_reclaimable 1\n"
    (group / "memory.stat").write_text(f"anon 5\ninactive_file 200\n{caches}")


def test_without_limits_the_memory_of_the_machine_counts(groups: Path) -> None:
    (groups / "own").write_text("0::/a\n")
    assert memory.available_memory() > 1000
    assert memory.available_memory() <= psutil.virtual_memory().total


def test_the_smallest_limit_of_a_group_and_those_above_counts(groups: Path) -> None:
    """The cache of files can be freed, so it counts as available."""
    names = ("memory.max", "memory.current")
    (groups / "own").write_text("0::/a/b\n")
    limit(groups / "a/b", "", names, ("max", "5"))
    limit(groups / "a", "", names, ("1000", "400"))
    assert memory.available_memory() == 1000 - 400 + 321
    limit(groups / "a/b", "", names, ("500", "400"))
    assert memory.available_memory() == 500 - 400 + 321


def test_version_1_has_a_group_of_its_own_for_memory(groups: Path) -> None:
    (groups / "own").write_text("5:cpu:/\n4:memory:/a\n0::/\n")
    limit(groups / "memory/a", "total_", ("memory.limit_in_bytes", "memory.usage_in_bytes"), ("1000", "900"))
    assert memory.available_memory() == 1000 - 900 + 321


@pytest.mark.parametrize("content", ["", "nonsense\n", "0::/a\n\n:::", "4:memory:/a:b\n"])
def test_groups_that_cannot_be_read_are_left_out(groups: Path, content: str) -> None:
    (groups / "own").write_text(content)
    (groups / "a").mkdir()
    (groups / "a/memory.max").write_text("many\n")
    assert memory.available_memory() > 0
