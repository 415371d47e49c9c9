"""Which checkpoints are whole is known without TensorFlow."""

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.run.directory import checkpoint_files
from accel_engine.run.directory.checkpoint_files import find_damage
from accel_engine.run.directory.run_paths import CHECKPOINTS, checkpoint_steps, latest_checkpoint

STEPS = (4, 8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two checkpoints of a run."""
    folder = tmp_path / CHECKPOINTS
    folder.mkdir()
    for step in STEPS:
        (folder / f"step-{step}.index").write_bytes(b"index" * step)
        for shard in range(2):
            (folder / f"step-{step}.data-0000{shard}-of-00002").write_bytes(b"data" * 1000 * step)
        checkpoint_files.write_checksums(folder, step)
    return folder


def edit(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("name", "harm", "words", "quick"),
    [
        ("index", edit(lambda content: content[:7]), "step-8.index has 7 bytes instead of 40", True),
        ("index", Path.unlink, "", False),  # then it is no checkpoint at all
        ("data-00001-of-00002", Path.unlink, "step-8.data-00001-of-00002 is missing", True),
        ("data-00001-of-00002", edit(lambda content: content + b"x"), "has 32,001 bytes instead of 32,000", True),
        ("data-00001-of-00002", edit(lambda content: b"D" + content[1:]), "checksum of step-8.data-00001", False),
        ("json", edit(lambda content: content.replace(b"true", b"false")), "values that are not finite", True),
    ],
)
def test_damage_is_named(folder: Path, name: str, harm: Callable[[Path], object], words: str, quick: bool) -> None:
    assert [find_damage(folder, step) for step in STEPS] == ["", ""]
    harm(folder / f"step-8.{name}")
    if not words:
        assert checkpoint_steps(folder.parent) == [4]
        return
    assert words in find_damage(folder, 8)
    assert bool(find_damage(folder, 8, quick=True)) == quick
    assert latest_checkpoint(folder.parent) == (4 if quick else 8)
    checkpoint_files.check_any_whole(folder)
    (folder / "step-4.data-00000-of-00002").unlink()
    if quick:
        assert latest_checkpoint(folder.parent) == 8, "a run must not start anew over what is left of its checkpoints"
        with pytest.raises(RunError, match=r"no whole checkpoint: .*step 8.*; .*step 4.*Nothing was deleted"):
            checkpoint_files.check_any_whole(folder)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"finite": true}',
        b'{"finite": true, "files": {"step-8.index": 7}}',
        b'{"finite": true, "files": {"../x": {"size": 1, "crc32": 1}, "step-8.index": {"size": 1, "crc32": 1}}}',
        b"[" * 9999,
    ],
)
def test_unreadable_checksums_are_like_none(folder: Path, text: bytes) -> None:
    (folder / "step-8.json").write_bytes(text)
    assert not checkpoint_files.has_checksums(folder, 8)
    assert find_damage(folder, 8) == ""
    checkpoint_files.write_checksums(folder, 8)
    assert {*json.loads((folder / "step-8.json").read_text())["files"]} == {
        "step-8.index",
        "step-8.data-00000-of-00002",
        "step-8.data-00001-of-00002",
    }


def test_a_checkpoint_is_deleted_with_its_checksums_and_no_other(folder: Path) -> None:
    (folder / "step-48.index").touch()
    checkpoint_files.delete(folder, [4])
    assert sorted(path.name.split(".")[0] for path in folder.iterdir()) == ["step-48", *["step-8"] * 4]


@pytest.mark.parametrize("best", [None, 4, 8])
def test_the_newest_and_the_best_checkpoint_are_kept(folder: Path, best: int | None) -> None:
    (folder / "step-9.data-00000-of-00001").touch()  # of an engine that was killed
    checkpoint_files.prune(folder, 1, best)
    assert {path.stem for path in folder.iterdir()} == {"step-8", f"step-{best or 8}"}


def test_later_checkpoints_are_deleted(folder: Path) -> None:
    (folder / "step-9.data-00000-of-00001").touch()
    checkpoint_files.delete_after(folder, 8)
    assert {path.stem for path in folder.iterdir()} == {"step-4", "step-8"}
    checkpoint_files.delete_after(folder, 7)
    assert {path.stem for path in folder.iterdir()} == {"step-4"}


def test_the_preferred_step_comes_first_and_each_only_once() -> None:
    assert [*islice(checkpoint_files.by_preference([4, 8, 12], max), 9)] == [12, 8, 4]
    assert [*islice(checkpoint_files.by_preference([4, 8], lambda left: 8 if 8 in left else None), 9)] == [8]


def test_leftovers_are_deleted_and_nothing_else(folder: Path) -> None:
    (folder / "step-9_temp").mkdir()
    (folder / "step-9_temp" / "part.tempstate1").touch()
    (folder / "step-4.index").unlink()
    for name in ("checkpoint", "step-x.json", "step-5.keras", "notes.txt"):
        (folder / name).touch()
    kept = {path.name for path in folder.iterdir() if not path.name.startswith(("step-4.", "step-9_temp"))}
    checkpoint_files.delete_leftovers(folder)
    assert {path.name for path in folder.iterdir()} == kept


def test_files_that_another_process_deletes_meanwhile_are_no_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    glob = Path.glob

    def find_and_delete(path: Path, pattern: str) -> Iterator[Path]:
        found = list(glob(path, pattern))
        for each in found:
            each.unlink()
        yield from found

    (folder / "step-4.index").unlink()
    monkeypatch.setattr(Path, "glob", find_and_delete)
    checkpoint_files.delete_leftovers(folder)
    checkpoint_files.delete(folder, [4, 8])
