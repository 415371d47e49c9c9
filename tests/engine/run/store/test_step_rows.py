"""Single steps as chunks."""

import numpy as np

from accel_engine.run.store.step_rows import MAX_GAP, StepChunk, StepRow, chunks_of


def rows(*steps: int, **values: float) -> list[StepRow]:
    return [StepRow(step, 100.0 + step, values or {"loss": float(step)}) for step in steps]


def test_consecutive_steps_are_one_chunk_from_the_end_of_the_step_before() -> None:
    (chunk,) = chunks_of(rows(3, 4, 5), next_step=3, started=102.0)

    assert (chunk.first_step, chunk.started, chunk.ended) == (3, 102.0, 105.0)
    assert chunk.series["loss"].tolist() == [3.0, 4.0, 5.0]


def test_steps_without_values_count_and_take_their_time() -> None:
    (chunk,) = chunks_of(rows(9, 19), next_step=0, started=100.0)

    assert (chunk.first_step, len(chunk.series["loss"]), chunk.ended) == (0, 20, 119.0)
    assert np.flatnonzero(np.isfinite(chunk.series["loss"])).tolist() == [9, 19]


def test_a_series_that_a_row_lacks_is_missing_there() -> None:
    (chunk,) = chunks_of([*rows(0, a=1.0), *rows(1, b=2.0)], next_step=0, started=100.0)

    assert np.isnan(chunk.series["a"]).tolist() == [False, True]
    assert np.isnan(chunk.series["b"]).tolist() == [True, False]


def test_a_wide_gap_is_not_filled_and_gives_no_speed() -> None:
    far = 2 + MAX_GAP + 1
    chunks = list(chunks_of(rows(0, 1, far, far + 1), next_step=0, started=99.0))

    assert [(chunk.first_step, len(chunk.series["loss"])) for chunk in chunks] == [(0, 2), (far, 1), (far + 1, 1)]
    assert chunks[1].started == chunks[1].ended == 100.0 + far
    assert chunks[2].started == 100.0 + far


def test_the_widest_gap_that_is_filled() -> None:
    (chunk,) = chunks_of(rows(0, 1 + MAX_GAP), next_step=0, started=99.0)

    assert len(chunk.series["loss"]) == MAX_GAP + 2


def test_no_rows_are_no_chunks() -> None:
    chunks: list[StepChunk] = list(chunks_of([], next_step=0, started=0.0))

    assert chunks == []
