"""Batch sizes, scenarios and verdicts, with a runtime of known speed on a clock of the test."""

from typing import ClassVar

import numpy as np
import pytest

from accel_engine import clock
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.inference.bench_runtime import BenchSettings, RuntimeBench, batches_of, random_examples
from accel_engine.inference.candidate import Candidate, Setup
from accel_engine.inference.comparison import choose_model
from accel_engine.inference.measurement.percentiles import Percentile
from accel_engine.inference.runtime import Arrays
from accel_engine.json_values import convert, to_plain

from .measurement.stub import FakeTimer

SETUP = Setup(model="m", format="keras", device="cpu:0", xla=False, precision="float32")
EXAMPLES = {"x": np.arange(10, dtype=np.float32)[:, np.newaxis]}


class KnownRuntime:
    """Takes 4 ms for a batch and 1 ms for each further 8 examples; 200 ms more for the first request of all."""

    name = "known"
    inputs: ClassVar = {"x": ArraySpec((1,), "float32")}
    outputs: ClassVar = {"y": ArraySpec((1,), "float32")}
    size = 0

    def __init__(self, timer: FakeTimer, largest: int = 1 << 20) -> None:
        self.sizes: list[int] = []
        self._timer = timer
        self._largest = largest

    def run(self, inputs: Arrays) -> dict[str, np.ndarray]:
        size = len(inputs["x"])
        if size > self._largest:
            raise ModelError("out of memory")
        self._timer.time += 1_000_000 * (4 + size // 8) + (0 if self.sizes else 200_000_000)
        self.sizes.append(size)
        return {"y": inputs["x"]}


class Counter:
    """A meter of known values, one after the other."""

    def __init__(self, *values: float) -> None:
        self.values = iter(values)

    def start(self) -> None:
        self.started = True

    def stop(self) -> float:
        assert self.started
        return next(self.values)


def settings(**changes) -> BenchSettings:
    values = {"scenario": "multi-stream", "batch_sizes": None, "seconds": 1.0, "target_latency": None, "seed": 0}
    return BenchSettings(**(values | changes))


def benched(largest: int = 1 << 20, **changes) -> list[Candidate]:
    timer = FakeTimer()
    bench = RuntimeBench(SETUP, KnownRuntime(timer, largest), EXAMPLES, settings(**changes), timer=timer)
    return list(bench.candidates())


def test_batch_sizes_double_until_the_throughput_stops_growing() -> None:
    found = benched()
    assert [each.batch_size for each in found] == [1 << power for power in range(len(found))]
    throughput = {each.batch_size: each.throughput for each in found}
    assert (throughput[1], throughput[64]) == (250, pytest.approx(64 / 0.012))
    # 8,000 examples/s at most: 512 reach 94% of it, 1,024 97%, 2,048 98%.
    assert found[-1].batch_size == 2048
    assert all(each.stable for each in found)


def test_latencies_are_those_of_the_runtime_and_the_first_request_is_apart() -> None:
    first, second = benched(batch_sizes=(8, 16))
    assert (first.first_seconds, second.first_seconds) == (0.205, 0.006)
    assert [first.percentiles[name].value for name in ("p50", "p99", "p999")] == [0.005] * 3
    assert second.percentiles["p50"].value == 0.006


def test_candidates_have_the_times_at_which_they_began() -> None:
    before = clock.now()
    first, second, failed = benched(largest=8, batch_sizes=(1, 8, 16))
    assert before <= first.began <= second.began <= failed.began <= clock.now()


def test_the_end_of_memory_is_a_candidate_with_a_problem_and_the_last() -> None:
    found = benched(largest=4)
    assert [(each.batch_size, each.problem) for each in found] == [(1, ""), (2, ""), (4, ""), (8, "out of memory")]
    assert [each.batch_size for each in benched(largest=4, batch_sizes=(2, 8, 16))] == [2, 8]


def test_a_batch_that_would_not_fit_in_memory_is_not_tried() -> None:
    timer = FakeTimer()
    runtime = KnownRuntime(timer)
    bench = RuntimeBench(
        SETUP,
        runtime,
        EXAMPLES,
        settings(batch_sizes=(2, 4, 8, 32)),
        Counter(20 * 2.0**30, 40 * 2.0**30, 80 * 2.0**30),
        available=lambda: 100 * 2.0**30,
        timer=timer,
    )
    found = list(bench.candidates())
    assert [(each.batch_size, each.problem) for each in found] == [
        (2, ""),
        (4, ""),
        (8, ""),
        (32, "it would take about 240 GiB more memory, and 100 GiB are left"),
    ]
    assert max(runtime.sizes) == 8


def test_no_batch_is_tried_after_one_whose_median_exceeds_the_wanted_latency() -> None:
    assert [each.batch_size for each in benched(target_latency=0.006)] == [1, 2, 4, 8, 16, 32]


def test_single_stream_sends_single_examples_and_offline_has_no_latencies() -> None:
    (single,) = benched(scenario="single-stream")
    assert single.batch_size == 1
    (offline,) = benched(scenario="offline", batch_sizes=(8,))
    assert (offline.percentiles, offline.throughput) == ({}, pytest.approx(1600))


def test_a_server_fills_batches_up_and_keeps_within_the_bound() -> None:
    timer = FakeTimer()
    runtime = KnownRuntime(timer)
    bench = RuntimeBench(
        SETUP,
        runtime,
        EXAMPLES,
        settings(scenario="server", batch_sizes=(6,), target_latency=0.02, seconds=20.0),
        timer=timer,
    )
    (found,) = bench.candidates()
    assert set(runtime.sizes) == {1, 2, 4, 6}
    assert found.percentiles["p99"].value <= 0.02
    # Alone, a request takes 4 ms: one by one, 250 a second at most.
    assert 900 < found.throughput < 1500


def test_a_server_that_is_too_slow_for_the_bound_has_no_rate() -> None:
    (found,) = benched(scenario="server", batch_sizes=(1,), target_latency=0.001, seconds=0.05)
    assert (found.throughput, found.problem) == (0, "")
    assert found.percentiles["p99"].value >= 0.004


def test_memory_is_that_of_the_meter_and_energy_is_by_example() -> None:
    timer = FakeTimer()
    bench = RuntimeBench(
        SETUP, KnownRuntime(timer), EXAMPLES, settings(batch_sizes=(8,)), Counter(60.0), Counter(60.0), timer=timer
    )
    (found,) = bench.candidates()
    assert found.memory == 60
    assert found.energy == pytest.approx(60 / (8 * (found.requests + found.warm_up_requests)))


def test_a_candidate_is_the_same_after_json() -> None:
    for candidate in (*benched(batch_sizes=(1,)), *benched(largest=0)):
        assert convert(to_plain(candidate), Candidate) == candidate


def test_batches_repeat_the_examples() -> None:
    first, second = batches_of(EXAMPLES, 8)
    assert first["x"][:, 0].tolist() == list(range(8))
    assert second["x"][:, 0].tolist() == [8, 9, 0, 1, 2, 3, 4, 5]
    (whole,) = batches_of(EXAMPLES, 25)
    assert len(whole["x"]) == 25


def test_random_examples_are_of_the_signature() -> None:
    specs = {
        "pixels": ArraySpec((2, 3), "uint8"),
        "age": ArraySpec((), "float32"),
        "text": ArraySpec((1,), "string"),
    }
    found = random_examples(specs)
    assert {name: (array.shape[1:], array.dtype.name) for name, array in found.items()} == {
        "pixels": ((2, 3), "uint8"),
        "age": ((), "float32"),
        "text": ((1,), "object"),
    }
    assert set(found["text"][:, 0]) == {"0", "1"}
    with pytest.raises(ModelError, match=r"input x has a dimension of any size .*--data"):
        random_examples({"x": ArraySpec((None, 3), "float32")})


def candidate(batch_size: int, p99: float, throughput: float, high: float | None = None, **changes) -> Candidate:
    found = {"p99": Percentile(p99, None, high)}
    described = {"model": "m", "format": "keras", "device": "cpu:0", "xla": False, "scenario": "multi-stream"}
    return Candidate(**described, batch_size=batch_size, percentiles=found, throughput=throughput, **changes)


def test_the_best_has_the_highest_throughput_within_the_latency() -> None:
    small, middle, large = candidate(1, 0.001, 100), candidate(8, 0.009, 700, 0.0095), candidate(64, 0.02, 900)
    every = [small, middle, large]
    assert choose_model(every, None, None).best is large
    within = choose_model(every, 0.01, 1500)
    assert (within.best, within.fastest, within.is_certain, within.machines) == (middle, small, True, 3)
    assert not choose_model(every, 0.0092, None).is_certain
    none = choose_model(every, 0.0001, 1500)
    assert (none.best, none.fastest, none.machines) == (None, small, None)


def test_what_failed_is_not_the_best() -> None:
    (failed,) = benched(largest=0)
    assert choose_model([failed], None, None).best is None
