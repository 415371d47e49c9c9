"""Reading any step_range of a run in buckets: the same as from its steps one by one."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.errors import DatabaseError, RunError
from accel_engine.run import Chunk, RunReader, RunWriter
from accel_engine.run.reading.reader import RECENT_CHUNKS
from accel_engine.run.store.buckets import downsample, merge
from accel_engine.run.store.database import RunDatabase
from accel_engine.run.store.downsampled_steps import WIDTHS, StepRange
from accel_engine.run.store.schema import SPANS
from accel_engine.run.store.steps import THROUGHPUT, TIME
from recorded_run import execute, started


class Recorder:
    """Writes chunks of random lengths and remembers every step."""

    def __init__(self, writer: RunWriter) -> None:
        self.writer = writer
        self.random = np.random.default_rng(0)
        self.now = 1.7e6
        self.steps: dict[str, list[float]] = {name: [] for name in ("loss", "norm", THROUGHPUT, TIME)}

    @property
    def step(self) -> int:
        return len(self.steps["loss"])

    def record(self, steps: int, most: int = 3000, norm: Callable[[int], bool] = lambda _: False) -> None:
        """Take steps; every hundredth loss is no number, and a chunk has a norm where ``norm`` says so."""
        target = self.step + steps
        while self.step < target:
            first, count = self.step, min(int(self.random.integers(1, most)), target - self.step)
            loss = self.random.normal(0, 1, count).astype(np.float32)
            loss[self.random.random(count) < 0.01] = np.nan
            series = {"loss": loss}
            if norm(first):
                series["norm"] = loss**2
            seconds = float(self.random.uniform(0.01, 0.1))
            self.writer.write_chunk(first, self.now, self.now + seconds, series)
            self.steps["loss"] += loss.tolist()
            self.steps["norm"] += series.get("norm", np.full(count, np.nan)).tolist()
            self.steps[THROUGHPUT] += np.full(count, count / seconds, np.float32).tolist()
            self.steps[TIME] += [self.now + seconds * (place + 1) / count for place in range(count)]
            self.now += seconds

    def forget(self, step: int) -> None:
        """Remember nothing of a step and of those after it."""
        for values in self.steps.values():
            del values[step:]

    def check(self, step_range: StepRange) -> None:
        """Compare a step_range with what was recorded."""
        for name, values in self.steps.items():
            whole = np.array(values, np.float64 if name == TIME else np.float32)
            wanted = downsample(whole[step_range.first_step : step_range.stop_step], step_range.width)
            if not wanted["finite"].any():
                assert name not in step_range.series or not step_range.series[name]["finite"].any()
                continue
            got = step_range.series[name]
            assert len(got) == len(wanted), name
            assert np.array_equal(got["finite"], wanted["finite"]), name
            if name == TIME:
                assert np.allclose(got["total"] / got["finite"], wanted["total"] / wanted["finite"], rtol=0, atol=1e-4)
                continue
            tolerance = 1e-4 if name == THROUGHPUT else 0.0  # differences of much larger times
            assert np.allclose(got["low"], wanted["low"], rtol=tolerance, atol=0, equal_nan=True), name
            assert np.allclose(got["high"], wanted["high"], rtol=tolerance, atol=0, equal_nan=True), name
            assert np.allclose(got["total"], wanted["total"], rtol=max(tolerance, 1e-9)), name


@pytest.fixture
def recorder(writer: RunWriter) -> Recorder:
    return Recorder(writer)


STRETCHES = [
    (0, 1 << 40, 1),
    (0, 1 << 40, 64),
    (0, 1 << 40, 512),
    (0, 1 << 40, 1024),
    (0, 1 << 40, 16384),
    (100_000, 100_400, 1),
    (70_001, 99_999, 64),
    (4095, 90_000, 128),
    (65_535, 65_537, 1),
    (60_000, 200_000, 256),
    (139_000, 150_000, 2),
    (500_000, 600_000, 4),
]


@pytest.fixture
def stale_rows(directory: Path) -> Iterator[Callable[[], list[tuple[Any, ...]]]]:
    """Asks for the rows of the summary that stand for steps that the run does not have."""
    spans = " ".join(f"WHEN {level} THEN {span}" for level, span in enumerate(SPANS))
    with closing(RunDatabase(directory)) as connection:
        yield lambda: connection.execute(
            f"SELECT level, first_step FROM summary WHERE first_step + CASE level {spans} END > "
            "(SELECT max(first_step + count) FROM chunk)"
        ).fetchall()


@pytest.mark.parametrize(("first", "last", "width"), STRETCHES)
def test_a_stretch_is_that_of_the_steps_themselves(
    recorder: Recorder, reader: RunReader, first: int, last: int, width: int
) -> None:
    recorder.record(150_000, norm=lambda step: step > 80_000)
    step_range = reader.step_range(first, last, width)
    assert step_range.width == width
    assert step_range.first_step % width == 0
    assert step_range.first_step <= first
    assert step_range.stop_step == max(step_range.first_step, min(last, 150_000))
    recorder.check(step_range)


@pytest.mark.parametrize(("first", "last", "width"), STRETCHES)
def test_of_a_stretch_only_those_series_are_read_that_are_asked_for(
    recorder: Recorder, reader: RunReader, first: int, last: int, width: int
) -> None:
    recorder.record(150_000, norm=lambda step: step > 80_000)
    every, some = reader.step_range(first, last, width), reader.step_range(first, last, width, {"norm", "unheard"})
    assert every.series.keys() - some.series.keys() == every.series.keys() - {"norm", THROUGHPUT, TIME}
    for name, buckets in some.series.items():
        assert buckets.tobytes() == every.series[name].tobytes()


def test_most_of_a_long_stretch_comes_from_the_summary(recorder: Recorder, reader: RunReader, directory: Path) -> None:
    recorder.record(150_000)
    execute(directory, "UPDATE main.chunk SET loss = zeroblob(length(loss)) WHERE first_step + count <= 131072")
    recorder.check(reader.step_range(0, 131_072, 1024))
    recorder.check(reader.step_range(5_000, 59_968, 64))


def test_a_run_without_steps_is_an_empty_stretch(reader: RunReader) -> None:
    step_range = reader.step_range(0, 1000, 4)
    assert (step_range.first_step, step_range.stop_step, dict(step_range.series)) == (0, 0, {})


@pytest.mark.parametrize(
    "step",
    [0, 4096, 131_072, *(pytest.param(step, marks=pytest.mark.campaign) for step in (1, 70_000, 131_071, 149_000))],
)
def test_a_resumed_run_has_the_steps_that_were_taken_last(
    recorder: Recorder, reader: RunReader, step: int, stale_rows: Callable[[], object]
) -> None:
    recorder.record(150_000)
    recorder.writer.begin(started(step))
    recorder.forget(step)
    assert stale_rows() == []
    recorder.check(reader.step_range(0, 1 << 40, 64))
    recorder.record(150_000)
    for first, last, width in STRETCHES:
        recorder.check(reader.step_range(first, last, width))


def test_steps_that_are_recorded_again_replace_the_old_ones(recorder: Recorder, reader: RunReader) -> None:
    recorder.record(20_000)
    recorder.forget(4_500)
    recorder.record(6_000)
    recorder.check(reader.step_range(0, 1 << 40, 64))
    assert reader.step_range(0, 1 << 40, 1).stop_step == 10_500


def test_rows_are_for_recorded_steps_only_however_many_are_skipped(
    directory: Path, writer: RunWriter, reader: RunReader
) -> None:
    far = 10_000_000
    for first, now in ((0, 1.0), (far, 3.0), (far + 5000, 4.0)):
        writer.write_chunk(first, now, now + 1.0, {"loss": np.full(5000, now)})

    with closing(RunDatabase(directory)) as connection:
        rows = connection.execute(
            "SELECT DISTINCT level, first_step FROM summary ORDER BY level, first_step"
        ).fetchall()
    of_far = far // SPANS[0] * SPANS[0]
    assert rows == [(0, 0), (0, SPANS[0]), (0, of_far), (0, of_far + SPANS[0]), (1, 0), (2, 0)]
    for width in (1, 1 << 6, 1 << 14, 1 << 18):
        everything = reader.step_range(0, 1 << 40, width)
        assert everything.stop_step == far + 10_000
        loss = everything.series["loss"]
        assert loss["finite"].sum() == 15_000
        assert loss["finite"][: far // width].sum() == 5000
        assert (loss[0]["low"], loss[-1]["high"]) == (1.0, 4.0)
    gap = reader.step_range(100_000, 200_000, 64)
    assert not gap.series[TIME]["finite"].any()
    assert len(gap.series[TIME]) == len(gap.series[THROUGHPUT]) == -(-(200_000 - gap.first_step) // 64)


def test_a_single_step_before_many_that_are_skipped_is_in_the_summary(writer: RunWriter, reader: RunReader) -> None:
    writer.write_chunk(0, 0.0, 1.0, {"loss": [1.0]})
    writer.write_chunk(SPANS[0] + 1, 1.0, 2.0, {"loss": np.ones(SPANS[0])})
    buckets = reader.step_range(0, 2 * SPANS[0] + 1, WIDTHS[0]).series["loss"]
    assert buckets["finite"].sum() == 1 + SPANS[0]


def test_steps_that_nothing_is_known_of_are_gaps(writer: RunWriter, reader: RunReader) -> None:
    writer.write_chunk(5_000, 1.0, 2.0, {"loss": np.ones(10_000)})
    writer.write_chunk(40_000, 3.0, 4.0, {"loss": np.ones(10_000)})
    for width in (1, 64, 1024):
        loss = reader.step_range(0, 50_000, width).series["loss"]
        assert loss["finite"].sum() == 20_000
        assert np.isnan(loss["low"][15_000 // width + 1 : 40_000 // width]).all()


def test_a_chunk_of_many_rows_of_the_summary(recorder: Recorder, reader: RunReader) -> None:
    recorder.record(300_000, most=100_000)
    for first, last, width in STRETCHES:
        recorder.check(reader.step_range(first, last, width))


@pytest.mark.parametrize("going_on", [0, 1, 10_000])
def test_a_file_whose_writer_added_no_summaries(
    recorder: Recorder, directory: Path, going_on: int, stale_rows: Callable[[], object]
) -> None:
    recorder.record(150_000)
    with closing(RunDatabase(directory)) as connection:
        connection.execute("DELETE FROM main.summary")
    if going_on:
        with closing(RunWriter(directory)) as recorder.writer:
            recorder.writer.begin(started(120_000))
            recorder.forget(120_000)
            recorder.record(going_on)
        assert stale_rows() == []
    with closing(RunReader(directory)) as reader:
        for first, last, width in STRETCHES:
            recorder.check(reader.step_range(first, last, width))


def test_a_program_that_knows_no_summary_leaves_it_true(
    recorder: Recorder, reader: RunReader, directory: Path, stale_rows: Callable[[], object]
) -> None:
    recorder.record(150_000)
    recorder.forget(70_123)
    with closing(RunDatabase(directory)) as connection:
        connection.execute("DELETE FROM main.chunk WHERE first_step >= 70123")
        row = connection.execute("SELECT id, first_step FROM chunk ORDER BY id DESC LIMIT 1").fetchone()
        keep = 70_123 - row[1]
        connection.execute(
            f"UPDATE main.chunk SET ended = started + (ended - started) * {keep} / count, count = {keep}, "
            f"loss = substr(loss, 1, {4 * keep}) WHERE id = ?",
            (row[0],),
        )
    assert stale_rows() == []
    recorder.check(reader.step_range(0, 1 << 40, 64))


@pytest.mark.parametrize("steps", [10_000, 150_000])
def test_opening_reads_the_latest_chunks_and_what_is_before_them_in_buckets(
    recorder: Recorder, directory: Path, steps: int
) -> None:
    recorder.record(steps, most=50)
    with closing(RunReader(directory, max_buckets=100)) as reader:
        update = reader.poll()
        if steps == 10_000:
            assert update.step_range is None
            assert update.chunks[0].first_step == 0
            return
        assert update.step_range
        assert update.step_range.width == 2048  # of 1024 each, there would be more than 100
        assert len(update.chunks) == RECENT_CHUNKS
        assert update.step_range.stop_step == update.chunks[0].first_step
        recorder.check(update.step_range)
        assert together(update.chunks) == recorder.steps["loss"][update.chunks[0].first_step :]
        recorder.record(3_000, most=50)
        update = reader.poll()
        assert len(update.chunks) > RECENT_CHUNKS
        assert update.step_range is None
        assert together(update.chunks) == recorder.steps["loss"][steps:]
        recorder.record(100_000, most=500)
        update = reader.poll()
        assert update.step_range  # a long time has passed
        recorder.check(update.step_range)


def test_a_failed_summary_loses_no_chunk(
    recorder: Recorder, reader: RunReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accel_engine.run.store import downsampled_steps

    def fail(*_: object) -> None:
        raise DatabaseError("disk I/O error")

    recorder.record(4_000, most=100)
    with monkeypatch.context() as broken:
        broken.setattr(downsampled_steps, "extend", fail)
        with pytest.raises(RunError):
            recorder.writer.write_chunk(4_000, 1.0, 2.0, {"loss": np.ones(200)})
    recorder.record(5_000)
    recorder.check(reader.step_range(0, 1 << 40, 64))


def test_buckets_of_buckets_are_buckets_of_their_steps() -> None:
    values = np.random.default_rng(0).normal(0, 1, 10_000).astype(np.float32)
    values[100:300] = np.inf
    merged, wanted = merge(downsample(values, WIDTHS[0]), 16), downsample(values, 16 * WIDTHS[0])
    assert np.array_equal(merged["low"], wanted["low"])
    assert np.array_equal(merged["finite"], wanted["finite"])
    assert np.allclose(merged["total"], wanted["total"])


def together(chunks: tuple[Chunk, ...]) -> Any:
    """The losses of chunks, as numbers that can be compared: there is no NaN among them."""
    losses = np.concatenate([chunk.series["loss"] for chunk in chunks])
    return pytest.approx(losses.tolist(), nan_ok=True)
