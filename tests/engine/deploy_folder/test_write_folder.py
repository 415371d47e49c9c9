"""Where a folder may be written, and what is left of what was there."""

import errno
from pathlib import Path

import pytest

from accel_engine.deploy_folder.deploy_to_folder import check_folder_deploy
from accel_engine.deploy_folder.folder_options import FolderOptions
from accel_engine.deploy_folder.write_folder import MARK, check_folder, writing_folder
from accel_engine.deployment.deploy_options import DeployOptions
from accel_engine.errors import RunError, UsageError


def write(path: Path, **files: str) -> None:
    with writing_folder(path) as folder:
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)


def test_writes_where_nothing_is(tmp_path) -> None:
    check_folder(tmp_path / "a/b", replaces=False)
    (tmp_path / "empty").mkdir()
    check_folder(tmp_path / "empty", replaces=False)

    write(tmp_path / "a/b", README="text")

    assert sorted(each.name for each in (tmp_path / "a/b").iterdir()) == [MARK, "README"]
    assert [each.name for each in (tmp_path / "a").iterdir()] == ["b"]


def test_refuses_what_others_wrote(tmp_path) -> None:
    (tmp_path / "mine.txt").write_text("x")

    for path, words in ((tmp_path, "did not write"), (tmp_path / "mine.txt", "is a file")):
        with pytest.raises(UsageError, match=words):
            check_folder(path, replaces=True)


def test_a_folder_may_be_in_the_home_directory(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match=f"{tmp_path}/mine.txt is a file"):
        check_folder_deploy(tmp_path, DeployOptions(), FolderOptions(to="~/mine.txt"))


def test_replaces_its_own_files_only(tmp_path) -> None:
    path = tmp_path / "service"
    write(path, **{"README": "old", "gone": "old", "server/a.py": "old", "kept/b": "old"})
    (path / "kept/mine").write_text("mine")
    (path / "venv").mkdir()
    (path / "server/__pycache__").mkdir()
    with pytest.raises(UsageError, match="--replace"):
        check_folder(path, replaces=False)
    check_folder(path, replaces=True)

    write(path, README="new")

    assert (path / "README").read_text() == "new"
    assert sorted(each.name for each in path.iterdir()) == [MARK, "README", "kept", "venv"]
    assert [each.name for each in (path / "kept").iterdir()] == ["mine"]


def test_a_failure_leaves_what_was_there(tmp_path) -> None:
    path = tmp_path / "service"
    write(path, README="old")

    with pytest.raises(ZeroDivisionError), writing_folder(path) as folder:
        _ = (folder / "README").write_text("new") / 0

    assert (path / "README").read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["service"]


def test_a_changed_mark_removes_nothing_elsewhere(tmp_path) -> None:
    path, other = tmp_path / "service", tmp_path / "other"
    other.write_text("x")
    write(path, README="old")
    (path / MARK).write_text((path / MARK).read_text().replace("README", "../other"))

    write(path, README="new")

    assert other.read_text() == "x"


def test_tells_where_it_cannot_write(tmp_path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(RunError, match="cannot write"), writing_folder(tmp_path / "file/service"):
        pass
    full = OSError(errno.ENOSPC, "No space left on device", "/source.py", None, "/copy.py")  # as a copy raises it
    wanted = tmp_path / "service"
    with pytest.raises(RunError, match=f"^cannot write {wanted}: No space left"), writing_folder(wanted):
        raise full


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "kserve"}, "--for is for a folder"),
        ({"licence": "MIT"}, "--licence is for a folder"),
        ({"to": "x", "target": "litert", "accelerator": "gpu"}, "litert has none"),
        ({"to": "x", "target": "tensorflow-serving", "accelerator": "tpu"}, "no TPU"),
        ({"to": "x", "node_selector": ("a=b",)}, "--node-selector is for kubernetes and kserve"),
        ({"to": "x", "target": "kubernetes", "storage": "gs://x"}, "--storage is for kserve"),
        ({"to": "x", "target": "litert", "image": "x"}, "--image"),
    ],
)
def test_refuses_options_that_do_not_fit(options: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        FolderOptions(**options)
