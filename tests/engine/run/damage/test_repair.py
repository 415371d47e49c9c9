"""What is whole of a damaged run is saved to a new one."""

import errno
import os
import re
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

import damaged_runs
from accel_engine.errors import RunError
from accel_engine.events import EpochEnded
from accel_engine.run import RunReader, Status, list_runs
from accel_engine.run.damage import repaired_rows
from accel_engine.run.damage.repair import Repair, SavedCount
from accel_engine.run.damage.repair import repair_run as repair_run
from accel_engine.run.directory.checkpoint_files import write_checksums
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import (
    CHECKPOINTS,
    LOG,
    MODEL,
    WORKERS,
    checkpoint_steps,
    hosts_directory,
    runs_directory,
)
from accel_engine.run.runs.worker_runs import worker_runs_of
from accel_engine.run.store.annotations import NAME_LENGTH, rename_run
from accel_engine.run.store.database import DATABASE

FIXED_COLUMNS = damaged_runs.COLUMNS | {"chunk": ("ended",)}

ROWS = {"meta": 6, "event": 34, "chunk": 20, "sample": 40, "command": 1, "diagnostics": 5, "media": 6}


def test_a_run_of_a_host_is_repaired_there(home: Path) -> None:
    mirror = hosts_directory() / "gpu1" / "runs" / "k3fp-digits"
    mirror.mkdir(parents=True)
    words = "run k3fp-digits is on gpu1: repair it there with accel-tui repair k3fp-digits"
    with pytest.raises(RunError, match=f"^{words}$"):
        repair_run(mirror)


@pytest.fixture
def run() -> Path:
    return damaged_runs.record()


def repair(directory: Path) -> Repair:
    """Repair a run of which something is damaged."""
    done = repair_run(directory)
    assert done
    return done


def saved(done: Repair) -> dict[str, int]:
    return {table: figures.saved for table, figures in done.rows.items()}


def lost(done: Repair) -> dict[str, int]:
    return {table: figures.lost for table, figures in done.rows.items() if figures.lost}


def test_a_whole_run_is_not_repaired(run: Path) -> None:
    with zipfile.ZipFile(run / MODEL, "w") as archive:
        archive.writestr("config.json", "{}")
    assert repair_run(run) is None
    assert list(runs_directory().iterdir()) == [run]


@pytest.mark.parametrize(
    "statement",
    [
        *(f"DROP TABLE {table}" for table in ("event", "chunk", "sample", "command")),
        *(f"ALTER TABLE {table} DROP COLUMN {names[-1]}" for table, names in FIXED_COLUMNS.items()),
        "UPDATE meta SET value = 'x' WHERE key = 'created'",
        "UPDATE sample SET readings = 'x' WHERE id = 4",
        "UPDATE diagnostics SET head = '['",
        "UPDATE summary SET buckets = zeroblob(12)",
        f"UPDATE summary SET buckets = cast(printf('%{64 * 20}s', '') AS BLOB)",
    ],
)
def test_each_damaged_table_is_noticed(run: Path, statement: str) -> None:
    damaged_runs.change(run, statement)
    done = repair(run)
    assert repair_run(done.directory) is None


def test_a_lost_header_is_replaced_and_all_rows_are_saved(run: Path) -> None:
    whole = damaged_runs.copied(run, run.parents[1] / "whole")
    damaged_runs.overwrite(run, 0, bytes(100))
    before = (run / DATABASE).read_bytes()
    done = repair(run)
    assert saved(done) == ROWS
    assert lost(done) == {}
    assert (run / DATABASE).read_bytes() == before
    with closing(RunReader(whole)) as old, closing(RunReader(done.directory)) as new:
        one, other = old.poll(), new.poll()
        assert other.events == one.events
        assert other.samples == one.samples
        assert [chunk.series["loss"].tobytes() for chunk in other.chunks] == [
            chunk.series["loss"].tobytes() for chunk in one.chunks
        ]
        assert new.info().name == "whole run (repaired)"
        assert new.info().status is Status.FINISHED
        assert new.info().plan == old.info().plan
    assert {each.directory for each in list_runs()} == {run, done.directory}
    assert re.fullmatch("[a-z0-9]{4}-whole-repaired", done.directory.name)


def test_rows_with_impossible_values_are_left_out(run: Path) -> None:
    damaged_runs.set_value(run, "chunk", "first_step", "=@ * 1000", 3)
    damaged_runs.set_value(run, "chunk", "first_step", 0, 12)
    damaged_runs.set_value(run, "sample", "readings", "x", 5)
    damaged_runs.set_value(run, "event", "body", "{}", 12)
    damaged_runs.set_value(run, "media", "body", b"", 2)
    damaged_runs.set_value(run, "media", "time", "noon", 3)
    damaged_runs.set_value(run, "media", "time", -1, 4)
    damaged_runs.set_value(run, "diagnostics", "head", "[", 0)
    done = repair(run)
    assert lost(done) == {"chunk": 2, "sample": 1, "event": 1, "media": 3, "diagnostics": 1}
    assert done.steps == damaged_runs.STEPS
    assert repair_run(done.directory) is None


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_rows_around_a_damaged_page_are_saved(run: Path, share: float) -> None:
    damaged_runs.overwrite(run, share, b"\xff" * 4096)
    done = repair(run)
    assert 0 < sum(lost(done).values()) < 45
    assert sum(saved(done).values()) > sum(ROWS.values()) - 45


def test_a_truncated_file_keeps_its_first_rows(run: Path) -> None:
    damaged_runs.truncate(run, 0.5)
    done = repair(run)
    assert saved(done)["event"] == ROWS["event"]
    assert 0 < saved(done)["chunk"] < ROWS["chunk"]
    assert lost(done)["chunk"] == ROWS["chunk"] - saved(done)["chunk"]


def test_a_plan_that_is_damaged_is_that_of_the_last_start(run: Path) -> None:
    damaged_runs.change(run, "UPDATE meta SET value = '{' WHERE key = 'plan'")
    damaged_runs.set_field(run, "event", "body", 0, "plan", {"model": "mlp", "epochs": 3})
    with closing(RunReader(repair(run).directory)) as reader:
        assert reader.info().plan_values["model"] == "mlp"


def test_a_missing_table_is_empty(run: Path) -> None:
    damaged_runs.change(run, "DROP TABLE chunk")
    done = repair(run)
    assert saved(done) == ROWS | {"chunk": 0}
    with closing(RunReader(done.directory)) as reader:
        assert [each for _, each in reader.events(0, EpochEnded)]


def test_whole_checkpoints_and_the_model_are_copied(run: Path) -> None:
    folder = run / CHECKPOINTS
    folder.mkdir()
    for step in (1, 200):
        (folder / f"step-{step}.index").write_bytes(b"index")
        (folder / f"step-{step}.data-00000-of-00001").write_bytes(b"data")
        write_checksums(folder, step)
    (folder / "step-200.index").write_bytes(b"Index")
    with zipfile.ZipFile(run / MODEL, "w") as archive:
        archive.writestr("config.json", "{}")
    (run / LOG).write_text("a line\n")
    done = repair(run)
    assert (done.checkpoints.saved, done.checkpoints.lost, done.model) == (1, 1, True)
    assert done.has_checkpoint
    assert {path.name for path in (done.directory / CHECKPOINTS).iterdir()} == {
        "step-1.index",
        "step-1.data-00000-of-00001",
        "step-1.json",
    }
    assert (done.directory / LOG).read_text() == "a line\n"


@pytest.mark.parametrize("problem", ["missing", "unreadable"])
def test_a_file_that_cannot_be_read_costs_one_checkpoint(
    run: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    """Of checkpoints without checksums, nothing else tells that they are damaged."""
    folder, read = run / CHECKPOINTS, os.pread
    folder.mkdir()
    for step in (1, 200):
        (folder / f"step-{step}.index").write_bytes(b"index")
        (folder / f"step-{step}.data-00000-of-00001").write_bytes(b"data")
    data = folder / "step-1.data-00000-of-00001"
    if problem == "missing":
        data.unlink()
        data.symlink_to("gone")

    def fail(file: int, *place: int) -> bytes:
        if data.exists() and os.path.samestat(os.fstat(file), data.stat()):
            raise OSError(errno.EIO, "Input/output error")
        return read(file, *place)

    monkeypatch.setattr(os, "pread", fail)
    damaged_runs.set_value(run, "sample", "readings", "x", 5)
    done = repair(run)
    assert done.checkpoints == SavedCount(saved=1, lost=1)
    assert {path.name for path in (done.directory / CHECKPOINTS).iterdir()} == {
        "step-200.index",
        "step-200.data-00000-of-00001",
    }


def test_a_damaged_model_is_not_copied(run: Path) -> None:
    (run / MODEL).write_bytes(b"no archive")
    done = repair(run)
    assert done.model is False
    assert not (done.directory / MODEL).exists()


def test_nothing_to_save_is_an_error_that_leaves_nothing(run: Path) -> None:
    damaged_runs.overwrite(run, 0, bytes(4096))
    with pytest.raises(RunError, match="that nothing can be saved"):
        repair(run)
    assert list(runs_directory().iterdir()) == [run]


def test_a_run_that_is_being_trained_is_refused(run: Path) -> None:
    with WriterLock(run), pytest.raises(RunError, match="is being trained: stop it before you repair it"):
        repair(run)


def test_a_run_of_a_newer_program_is_refused(run: Path) -> None:
    """This one would lose what it does not know."""
    damaged_runs.change(run, "UPDATE meta SET value = 99 WHERE key = 'schema'")
    with pytest.raises(RunError, match="was created by a newer accel-tui"):
        repair_run(run)
    assert list(runs_directory().iterdir()) == [run]


@pytest.mark.parametrize(
    ("starts", "kept"),
    [
        ([0, 1000, 500, 750, 1000], [0, 500, 750, 1000]),
        ([500, 750, 0, 250, 500, 750], [0, 250, 500, 750]),
        ([0, 100, 250], [0, 250]),
        ([750, 500, 250], [250]),
    ],
)
def test_most_chunks_are_kept_of_those_that_are_not_in_order(run: Path, starts: list[int], kept: list[int]) -> None:
    damaged_runs.change(run, "DELETE FROM chunk WHERE id > ?", len(starts))
    for number, start in enumerate(starts, 1):
        damaged_runs.change(run, "UPDATE chunk SET first_step = ? WHERE id = ?", start, number)
    done = repair(run)
    assert done.rows["chunk"] == SavedCount(len(kept), len(starts) - len(kept))
    with closing(RunReader(done.directory)) as reader:
        assert [chunk.first_step for chunk in reader.poll().chunks] == kept


def test_properties_that_cannot_be_read_are_counted_as_lost(run: Path) -> None:
    damaged_runs.overwrite_root(run, "meta")
    assert repair(run).rows["meta"].lost == len(repaired_rows._KEPT_META)


def test_records_of_which_no_table_can_be_read_are_counted_as_lost(run: Path) -> None:
    with zipfile.ZipFile(run / MODEL, "w") as archive:
        archive.writestr("config.json", "{}")
    damaged_runs.overwrite(run, 0, bytes(4096))
    rows = repair(run).rows
    assert all(figures.lost for figures in rows.values())
    assert not any(figures.saved for figures in rows.values())


def test_a_long_name_is_cut(run: Path) -> None:
    rename_run(run, NAME_LENGTH * "x")
    damaged_runs.set_value(run, "sample", "readings", "x", 5)
    with closing(RunReader(repair(run).directory)) as reader:
        assert reader.info().name == (NAME_LENGTH - 11) * "x" + " (repaired)"


def test_the_runs_of_other_workers_are_repaired_too(run: Path) -> None:
    folder = run / WORKERS
    folder.mkdir()
    for place in ("1", "2", "ps0"):
        damaged_runs.copied(damaged_runs.record(), folder / place)
    elsewhere = damaged_runs.record("elsewhere")
    (folder / "3").symlink_to(Path("../..", elsewhere.name), target_is_directory=True)
    damaged_runs.set_value(folder / "1", "sample", "readings", "x", 5)
    (folder / "2" / DATABASE).unlink()
    (folder / "1" / LOG).write_text("a worker\n")
    done = repair(run)
    assert done.workers == SavedCount(saved=3, lost=1)
    assert done.rows["sample"] == SavedCount(saved=3 * 40 - 1, lost=1)
    copies = worker_runs_of(done.directory)
    assert list(copies) == ["worker 1", "worker 3", "parameter server 0"]
    assert copies["worker 3"].resolve() == elsewhere
    assert (copies["worker 1"] / LOG).read_text() == "a worker\n"
    assert repair_run(done.directory) is None


def test_checkpoints_of_other_workers_are_looked_at_and_kept(run: Path) -> None:
    worker = run / WORKERS / "1"
    worker.parent.mkdir()
    damaged_runs.copied(damaged_runs.record(), worker)
    for folder in (run / CHECKPOINTS, worker / CHECKPOINTS):
        folder.mkdir()
        for step in (1, 2):
            for name in ("index", "data-00000-of-00001"):
                (folder / f"step-{step}.{name}").write_bytes(b"index")
            write_checksums(folder, step)
    assert repair_run(run) is None
    (worker / CHECKPOINTS / "step-2.index").write_bytes(b"jndex")
    done = repair(run)
    assert done.checkpoints == SavedCount(saved=3, lost=1)
    assert checkpoint_steps(done.directory / WORKERS / "1") == [1]
    assert checkpoint_steps(done.directory) == [1, 2]
    for step in (1, 2):
        (run / CHECKPOINTS / f"step-{step}.index").write_bytes(b"")
    done = repair(run)
    assert done.checkpoints == SavedCount(saved=1, lost=3)
    assert checkpoint_steps(done.directory) == [1], "which the worker has, too"


def test_texts_that_are_no_utf_8_are_written_again(run: Path) -> None:
    damaged_runs.change(run, "UPDATE meta SET value = CAST(x'61ff' AS TEXT) WHERE key = 'note'")
    damaged_runs.change(run, "DELETE FROM meta WHERE key IN ('name', 'created')")
    damaged_runs.change(run, """UPDATE meta SET value = '{"name": "\\ud800", "model": 1}' WHERE key = 'plan'""")
    damaged_runs.set_value(run, "event", "body", "=CAST(x'ff' AS TEXT)", 12)
    damaged_runs.set_value(run, "command", "who", "=CAST(x'ff' AS TEXT)")
    with closing(RunReader(repair(run).directory)) as reader:
        assert reader.info().annotations.note == "a\N{REPLACEMENT CHARACTER}"
        assert reader.info().name.endswith("(repaired)")
