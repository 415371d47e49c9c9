"""What a run takes is compared with what is free before it starts."""

from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.plan.disk_estimate import estimate_disk
from accel_engine.process.start_run import prepare_continuation, prepare_run
from accel_engine.run import runs_directory
from accel_engine.run.directory import disk_space
from accel_engine.run.directory.disk_space import free_bytes, shortage
from full_disk import small_disk

PLAN = Plan(model="mlp", keep_checkpoints=2)


@pytest.mark.parametrize(
    ("changes", "files", "slots"),
    [
        ({}, 4, 2),
        ({"optimizer": "sgd"}, 4, 0),
        ({"keep_checkpoints": 5}, 7, 2),
        ({"ema_momentum": 0.99}, 4, 3),
        ({"restore_best": "on"}, 5, 2),
    ],
)
def test_checkpoints_and_the_model_are_counted(changes: dict[str, object], files: int, slots: int) -> None:
    plan = PLAN.replace(**changes)
    growth = estimate_disk(plan, 0, 1000, 900) - estimate_disk(plan, 0)
    assert growth == files * 4 * (1000 + slots * 900)


def test_steps_are_counted() -> None:
    assert estimate_disk(PLAN, 10**9) - estimate_disk(PLAN, 0) == 18 * 10**9


def test_a_run_that_may_fill_the_disk_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_space, "free_bytes", lambda _: 7 << 20)
    warnings: list[str] = []
    prepare_run(PLAN.replace(epochs=2), warn=warnings.append)
    assert warnings == []
    directory = prepare_run(PLAN.replace(epochs=10_000), warn=warnings.append)
    (warning,) = warnings
    assert warning.startswith("the run takes about 15.7 MiB on the disk, which has 7.0 MiB free")
    assert directory.is_dir()


def test_no_run_starts_without_any_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_space, "free_bytes", lambda _: 1 << 20)
    with pytest.raises(RunError, match=r"^no run can start: the disk of .*/runs has 1.0 MiB free. Make room, or set "):
        prepare_run(PLAN)
    assert not runs_directory().exists()


def test_none_is_continued_either(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = prepare_run(PLAN)
    (directory / "checkpoints").mkdir()
    (directory / "checkpoints" / "step-4.index").touch()
    monkeypatch.setattr("accel_engine.process.start_run.check_any_whole", lambda _: None)
    monkeypatch.setattr(
        "accel_engine.run.engine.status._is_starting", lambda *_: False
    )  # it waits for an engine no more
    monkeypatch.setattr(disk_space, "free_bytes", lambda _: 1 << 20)
    with pytest.raises(RunError, match="no run can start"):
        prepare_continuation(directory)


def test_a_real_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 3) as disk:
        free = free_bytes(disk / "not" / "there" / "yet")
        assert free is not None
        assert 2 << 20 < free <= 3 << 20
        assert shortage(disk, free) == ""
        assert shortage(disk, 4 << 20).startswith("the run takes about 4.0 MiB on the disk")


def test_a_disk_of_unknown_size_is_taken_as_large_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(_: object) -> None:
        raise OSError

    monkeypatch.setattr(disk_space.shutil, "disk_usage", fail)
    assert free_bytes(tmp_path) is None
    assert shortage(tmp_path, 1 << 60) == ""
