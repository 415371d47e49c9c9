"""How TensorFlow Serving should batch requests follows from measurements, and is written as it reads it."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format, wrappers_pb2

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.inference.candidate import Candidate
from accel_engine.inference.measurement.percentiles import Percentile
from accel_engine.model_export import serving_batching
from accel_engine.model_export.serving_batching import (
    Batching,
    _thread_counts,
    best_size,
    choose_batching,
    is_ours,
    write_batching,
)
from accel_engine.training.memory_meters import HostMemory


def candidate(batch: int, throughput: float, p50: float, p99: float, problem: str = "") -> Candidate:
    """Latencies are in milliseconds."""
    times = {"p50": Percentile(p50 / 1000, None, None), "p99": Percentile(p99 / 1000, None, None)}
    described: dict[str, Any] = {"model": "a", "format": "savedmodel", "device": "cpu:0", "xla": False}
    return Candidate(
        **described,
        scenario="multi-stream",
        batch_size=batch,
        percentiles={} if problem else times,
        throughput=throughput,
        problem=problem,
    )


SIZES = [
    candidate(1, 1000, 1, 2),
    candidate(2, 1800, 1.1, 2.5),
    candidate(4, 3000, 1.3, 3),
    candidate(8, 3100, 2.5, 6),
    candidate(16, 3000, 5, 10),
]


def test_the_smallest_size_near_the_best_throughput_is_chosen() -> None:
    assert best_size(SIZES, None) == 4
    assert best_size(SIZES, 0.005) == 2
    assert best_size([*SIZES, candidate(32, 9000, 9, 9), candidate(64, 0, 0, 0, "out of memory")], None) == 32


@pytest.mark.parametrize(
    ("sizes", "target", "message"),
    [
        (SIZES, 0.003, "a single example takes 2 ms at p99, more than half of the target latency"),
        ([SIZES[0], candidate(2, 1040, 2, 2)], None, "batches are not faster"),
        ([candidate(1, 0, 0, 0, "out of memory")], None, "out of memory"),
    ],
)
def test_where_batches_have_no_use_they_are_refused(sizes: list[Candidate], target: float | None, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        best_size(sizes, target)


def test_threads_are_the_fewest_near_the_best_throughput() -> None:
    by_threads = [(1, candidate(4, 3000, 1.3, 4)), (2, candidate(4, 2500, 1.6, 5)), (4, candidate(4, 1300, 3, 8))]
    assert choose_batching(SIZES, by_threads, 4, None) == Batching(
        max_batch_size=4,
        batch_timeout_micros=1000,  # a lone request takes at most twice as long
        max_enqueued_batches=400,  # the last one waits for a second
        num_batch_threads=2,
        allowed_batch_sizes=(1, 2, 4),
    )


def test_a_target_limits_threads_waiting_and_the_queue() -> None:
    by_threads = [(1, candidate(4, 3000, 1.3, 4)), (2, candidate(4, 2500, 1.6, 5))]
    within = choose_batching(SIZES, by_threads, 4, 0.0098)
    assert (within.num_batch_threads, within.batch_timeout_micros, within.max_enqueued_batches) == (1, 1000, 1)
    near = choose_batching(SIZES, by_threads, 4, 0.0083)
    assert near.batch_timeout_micros == pytest.approx(300, abs=1)  # what is left after two batches
    more = choose_batching(SIZES, by_threads, 4, 0.1)
    assert (more.num_batch_threads, more.max_enqueued_batches) == (2, 37)  # 100 = 1 + 5 + 37 / 2 * 5
    late = choose_batching(SIZES, [(1, candidate(4, 3000, 1.3, 9)), (2, candidate(4, 0, 0, 0, "no memory"))], 4, 0.01)
    assert (late.num_batch_threads, late.batch_timeout_micros, late.max_enqueued_batches) == (1, 0, 1)


def test_numbers_of_threads_end_with_all_cores() -> None:
    assert [_thread_counts(cores) for cores in (1, 2, 6)] == [[1], [1, 2], [1, 2, 4, 6]]


def batching_parameters() -> Any:
    """A message with the fields of ``tensorflow.serving.BatchingParameters``, as its file has them."""
    file = descriptor_pb2.FileDescriptorProto(name="batching.proto", package="tensorflow.serving", syntax="proto3")
    file.dependency.append(wrappers_pb2.DESCRIPTOR.name)
    message = file.message_type.add(name="BatchingParameters")
    field = descriptor_pb2.FieldDescriptorProto
    wrapped = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads")
    for number, name in enumerate(wrapped, 1):
        kind = {"type": field.TYPE_MESSAGE, "type_name": ".google.protobuf.Int64Value"}
        message.field.add(name=name, number=number, label=field.LABEL_OPTIONAL, **kind)
    message.field.add(name="allowed_batch_sizes", number=6, label=field.LABEL_REPEATED, type=field.TYPE_INT64)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.serving.BatchingParameters"))()


class Constant:
    """A runtime that takes as long for a batch as for one example."""

    name = "savedmodel"
    inputs = outputs = {"x": ArraySpec((1,), "float32")}  # noqa: RUF012
    size = 1

    def run(self, inputs: Any) -> Any:
        time.sleep(0.001)  # long beside what other programs take
        return inputs


def test_the_file_is_what_tensorflow_serving_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_batching, "SECONDS", 0.01)
    path, examples = tmp_path / "batching.config", {"x": np.zeros((8, 1), np.float32)}
    write_batching(path, "k3fp\nmax_batch_size", Constant(), examples, None, 2, HostMemory(), lambda: 1e12)
    found = text_format.Parse(path.read_text(), batching_parameters())
    assert found.max_batch_size.value > 1
    assert found.allowed_batch_sizes == [1 << power for power in range(len(found.allowed_batch_sizes))]
    assert found.allowed_batch_sizes[-1] == found.max_batch_size.value
    assert found.num_batch_threads.value in (1, 2)
    assert found.max_enqueued_batches.value >= found.num_batch_threads.value
    assert found.batch_timeout_micros.value >= 0
    assert "# Chosen from measurements of k3fp max_batch_size on 2 CPU cores:" in path.read_text()
    assert is_ours(path)
    path.write_text(path.read_text().partition("\n")[2])
    assert not is_ours(path)
