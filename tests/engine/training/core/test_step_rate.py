from accel_engine.training.core.loop import ChunkResult
from accel_engine.training.core.step_rate import ChunkRate

CHUNKS = [ChunkResult(count, 0.0, seconds, {}, 1) for count, seconds in ((4, 9.0), (10, 0.5), (20, 0.25))]


def test_a_rate_is_that_of_all_chunks_together() -> None:
    rate = ChunkRate()
    assert rate.value == 0
    for chunk in CHUNKS:
        rate.add(chunk)

    assert rate.value == 34 / 9.75
    assert (rate.chunks, rate.seconds) == (3, 9.75)


def test_a_warm_up_does_not_count() -> None:
    rate = ChunkRate(warm_up=True)
    for chunk in CHUNKS:
        rate.add(chunk)

    assert rate.value == 30 / 0.75
    assert (rate.chunks, rate.seconds) == (2, 0.75)
