"""Profiles of traces whose right answers are known."""

from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.events import Phase
from accel_engine.op_profile.op_names import innermost_mark, scopes, shown_name, split_operation
from accel_engine.op_profile.reduction import OperationCost, TraceFacts, reduce_planes, reduce_trace
from accel_engine.protobuf import bytes_field, text_field
from accel_engine.run.diagnostics.model_items import LAYERS, SCOPES, OpProfile

from .traces import TraceBuilder

THREADS = {
    "tf_Compute/1": [
        (0, 10, "ExecutorState::Process"),
        (0, 4, "while/body/_1/while/net_1/dense_1/layer.0./MatMul:_MklMatMul"),
        (1, 3, "inner/Mul:Mul"),  # within the product
        (1.5, 2, "inner/Add:AddV2"),  # within the other one
        (6, 9, "while/body/_1/gradient_tape/while/net_1/dense_1/layer.0./MatMul/MatMul_1:_MklMatMul"),
    ],
    "tf_Compute/2": [
        (2, 5, "while/body/_1/while/adam/Square:Square"),
        (5, 5, "MemoryAllocation"),
        (12, 14, "while/body/_1/while/net_1/dense_1/layer.0./MatMul:_MklMatMul"),
        (14, 14, "ThreadpoolListener::Record"),
        (14, 15, "EagerLocalExecute: __inference_chunk_1"),
        (15, 16, "__inference_chunk_1:__inference_chunk_1"),
        (14.5, 15.5, "StatefulPartitionedCall:StatefulPartitionedCall"),
    ],
}


def times(profile: OpProfile) -> dict[str, float]:
    """Milliseconds by operation."""
    return {each.name: round(1e3 * each.seconds, 6) for each in profile.operations}


def test_operations_of_threads_count_once_and_without_those_within_them(tmp_path: Path) -> None:
    costs = {"while/net_1/dense_1/layer.0./MatMul": OperationCost(8e6, 2e6)}
    facts = TraceFacts(steps=2, layers={0: "dense"}, cost_of=lambda name, kind: costs.get(name))
    profile = reduce_planes(TraceBuilder().plane("/host:CPU", THREADS, began=7).planes(tmp_path), facts)

    assert times(profile) == {
        "dense/MatMul": 4.0,  # 4 - 2 within it, and 2 of the other thread
        "gradient_tape/dense/MatMul/MatMul_1": 3.0,
        "adam/Square": 3.0,
        "inner/Mul": 1.5,
        "inner/Add": 0.5,
    }
    product = profile.operations[-3 - 2]
    assert (product.kind, product.group, product.count) == ("_MklMatMul", "dense", 2)
    assert (product.flops, product.bytes) == (8e6, 2e6)
    assert (profile.device, profile.devices, profile.lanes, profile.steps) == ("cpu", 1, 2, 2)
    assert profile.seconds == pytest.approx(14e-3)
    assert profile.busy == pytest.approx(10e-3)  # 0 to 5, 6 to 9, 12 to 14
    assert profile.total == pytest.approx(12e-3)
    assert profile.idle == pytest.approx(4 / 14)
    assert [(gap.count, gap.longest, gap.seconds) for gap in profile.gaps] == [
        (1, pytest.approx(1e-3), pytest.approx(1e-3)),
        (1, pytest.approx(3e-3), pytest.approx(3e-3)),
    ]
    assert profile.grouped_by == LAYERS
    groups = {each.name: (round(1e3 * each.seconds, 6), each.flops) for each in profile.groups}
    assert groups == {"dense": (7.0, 16e6), "adam": (3.0, 0.0), "inner": (2.0, 0.0)}


def test_without_marks_operations_are_grouped_by_name_scope(tmp_path: Path) -> None:
    profile = reduce_planes(TraceBuilder().plane("/host:CPU", THREADS).planes(tmp_path), TraceFacts())
    assert profile.grouped_by == SCOPES
    assert [each.name for each in profile.groups] == ["net_1/dense_1", "adam", "inner"]


def test_the_time_before_the_first_operation_and_after_the_last_one_is_idle(tmp_path: Path) -> None:
    space = TraceBuilder().plane("/host:CPU", {"a": [(3, 5, "MatMul:MatMul")]})
    space.plane("Task Environment", {}, {"profile_start_time": 10**18, "profile_stop_time": 10**18 + 8 * 10**6})
    profile = reduce_planes(space.planes(tmp_path), TraceFacts())
    assert profile.seconds == pytest.approx(8e-3)
    assert profile.idle == pytest.approx(6 / 8)
    assert [(gap.count, gap.seconds) for gap in profile.gaps] == [(2, pytest.approx(6e-3))]


def test_what_comes_between_the_steps_is_not_of_them(tmp_path: Path) -> None:
    steps = [(1, 2, "while/net_1/d/layer.0./MatMul:MatMul"), (7, 8, "while/net_1/d/layer.0./MatMul:MatMul")]
    lines = {"a": [*steps, (3, 5, "net_1_1/d_1/MatMul:MatMul")], "b": [(4, 6, "net_1_1/d_1/Softmax:Softmax")]}
    began = 10**18
    space = TraceBuilder().plane("/host:CPU", lines)
    space.plane("Task Environment", {}, {"profile_start_time": began, "profile_stop_time": began + 10 * 10**6})
    before = [(Phase.VALIDATING, began - 9_000_000), (Phase.TRAINING, began - 5)]
    validation = [(Phase.VALIDATING, began + 2_500_000), (Phase.TRAINING, began + 6_500_000)]
    cut = (Phase.CHECKPOINTING, began + 9_000_000)
    facts = TraceFacts(steps=2, layers={0: "d"}, entered=(*before, *validation, cut))
    profile = reduce_planes(space.planes(tmp_path), facts)
    assert times(profile) == {"d/MatMul": 2.0}
    assert [(each.name, each.seconds) for each in profile.groups] == [("d", pytest.approx(2e-3))]
    assert profile.lanes == 1
    assert profile.seconds == pytest.approx(5e-3)
    assert profile.busy == pytest.approx(2e-3)
    assert sum(gap.seconds for gap in profile.gaps) == pytest.approx(3e-3)
    took = ("A validation took 4.00 ms", "A checkpoint took 1.00 ms")
    assert profile.notes == tuple(f"{each} of the trace, apart from the steps and in no share." for each in took)


def test_names_that_repeat_are_one_part_and_operations_are_none(tmp_path: Path) -> None:
    names = ("compile_loss/Mul", "replica_1/compile_loss_1/Mul", "strided_slice_7/Pack", "Fill/dims", "Cast")
    lines = {"a": [(place, place + 1, f"{name}:Mul") for place, name in enumerate(names)]}
    profile = reduce_planes(TraceBuilder().plane("/host:CPU", lines).planes(tmp_path), TraceFacts(layers={0: "d"}))
    assert {each.name: round(1e3 * each.seconds, 6) for each in profile.groups} == {"": 3.0, "compile_loss": 2.0}


def test_waiting_for_the_input_pipeline_keeps_no_device_busy(tmp_path: Path) -> None:
    lines = {"a": [(0, 6, "IteratorGetNext:IteratorGetNext"), (6, 8, "MatMul:MatMul")]}
    profile = reduce_planes(TraceBuilder().plane("/host:CPU", lines).planes(tmp_path), TraceFacts())
    assert times(profile) == {"IteratorGetNext": 6.0, "MatMul": 2.0}
    assert profile.idle == pytest.approx(6 / 8)


def test_an_instruction_of_xla_lasts_until_it_has_ended(tmp_path: Path) -> None:
    def stats(name: str, number: int) -> dict[str, str | int]:
        return {"hlo_op": name, "hlo_module": "run", "program_id": 5, "_p": number}

    lines = {
        "a": [
            (0, 0.5, "while.2", stats("while.2", 1)),
            (1, 2, "convolution.3", stats("convolution.3", 2)),
            (2, 3, "dot.1", stats("dot.1", 3)),
            (8, 8.1, "end: while.2", {"_c": 1}),
        ],
        "b": [(5, 5.1, "end: convolution.3", {"_c": 2}), (2.9, 3, "end: dot.1", {"_c": 3})],
    }
    profile = reduce_planes(TraceBuilder().plane("/host:CPU", lines).planes(tmp_path), TraceFacts(steps=1))
    assert times(profile) == {"convolution.3": 4.0, "dot.1": 1.0}  # the loop's time is theirs
    assert profile.busy == pytest.approx(4e-3)
    assert profile.total == pytest.approx(5e-3)


GPU = {
    "Stream #13(Kernel)": [
        (0, 2, "void conv_kernel<float>()", {"tf_op": "net/layer.1./conv/Conv2D:Conv2D", "correlation_id": 7}),
        (2, 3, "void pad()", {"tf_op": "net/layer.1./conv/Conv2D:Conv2D", "correlation_id": 8}),
        (5, 6, "fusion_3", {"hlo_op": "fusion.3", "hlo_module": "chunk", "program_id": 4, "tf_op": "XlaRun:XlaRun"}),
        (6, 6, "MemoryAlloc"),
    ],
    "Stream #17(MemcpyH2D)": [(2.5, 4, "MemcpyH2D", {"memcpy_details": "size:4"})],
    "Framework Ops": [(0, 3, "Conv2D")],  # derived from the others
}


def test_a_gpu_runs_the_kernels_of_its_streams(tmp_path: Path) -> None:
    space = TraceBuilder().plane("/host:CPU", THREADS).plane("/device:GPU:0", GPU, {"memory_bandwidth": 900 * 10**9})
    facts = TraceFacts(layers={1: "conv"}, accelerator="gpu")
    profile = reduce_planes(space.planes(tmp_path), facts)

    assert times(profile) == {"conv/Conv2D": 3.0, "MemcpyH2D": 1.5, "fusion.3": 1.0}
    convolution = profile.operations[0]
    assert (convolution.group, convolution.count) == ("conv", 1)  # one operation, of two kernels
    assert convolution.kernel == "void conv_kernel<float>()"
    assert (profile.device, profile.lanes) == ("gpu", 2)
    assert profile.seconds == pytest.approx(6e-3)
    assert profile.busy == pytest.approx(5e-3)
    assert profile.peak_bytes == 900e9
    assert profile.notes == ("A fusion of XLA counts for the layer of its last operation.",)


def test_the_time_of_several_gpus_is_the_mean(tmp_path: Path) -> None:
    space = TraceBuilder()
    space.plane("/device:GPU:0", {"Stream #1(Kernel)": [(0, 10, "a")]})
    space.plane("/device:GPU:1", {"Stream #1(Kernel)": [(2, 4, "a")]})
    profile = reduce_planes(space.planes(tmp_path), TraceFacts())
    assert (profile.devices, profile.busy, profile.idle) == (2, pytest.approx(6e-3), pytest.approx(0.4))
    assert sum(gap.seconds for gap in profile.gaps) == pytest.approx(8e-3)


def test_a_tpu_runs_the_operations_of_its_line(tmp_path: Path) -> None:
    lines = {"XLA Ops": [(0, 2, "fusion.1"), (0.5, 1, "copy.1")], "XLA Modules": [(0, 9, "jit(run)")]}
    profile = reduce_planes(TraceBuilder().plane("/device:TPU:0", lines).planes(tmp_path), TraceFacts())
    assert (profile.device, times(profile)) == ("tpu", {"fusion.1": 1.5, "copy.1": 0.5})


def test_a_gpu_without_kernels_is_said(tmp_path: Path) -> None:
    profile = reduce_planes(TraceBuilder().plane("/host:CPU", THREADS).planes(tmp_path), TraceFacts(accelerator="gpu"))
    assert profile.device == "cpu"
    assert profile.notes == ("the trace has no operations of the GPU: these are the host's, which start them",)


def test_a_trace_without_operations_is_empty(tmp_path: Path) -> None:
    profile = reduce_planes(TraceBuilder().plane("/host:CPU", {"python": []}).planes(tmp_path), TraceFacts())
    assert (profile.operations, profile.seconds, profile.idle, profile.gaps) == ((), 0.0, 0.0, ())


IN_AN_EVENT = bytes_field(1, text_field(2, "/host:CPU") + bytes_field(3, bytes_field(4, b"\x08")))


@pytest.mark.parametrize("data", [b"\x0a\xff", b"\x0a\x05\x12\x09ab", IN_AN_EVENT])
def test_a_damaged_trace_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "host.xplane.pb").write_bytes(data)
    with pytest.raises(RunError, match="cannot be read"):
        reduce_trace(tmp_path, TraceFacts())


def test_a_folder_without_a_trace_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no trace in"):
        reduce_trace(tmp_path, TraceFacts())


def test_names_of_operations() -> None:
    name = "while/body/_1/gradient_tape/while/net_1/outer/layer.2./dense_1/layer.12._1/MatMul/MatMul"
    assert innermost_mark(name) == 12
    assert scopes(name) == ("net_1", "outer", "dense_1", "MatMul")
    assert shown_name(name, {}) == "gradient_tape/net_1/outer/dense_1/MatMul/MatMul"
    assert shown_name(name, {2: "outer", 12: "dense"}) == "gradient_tape/outer/dense/MatMul/MatMul"
    other_replica = "gradient_tape/replica_1/net_1/dense_1_2/layer.12./MatMul/MatMul"
    assert shown_name(other_replica, {12: "dense_1"}) == "gradient_tape/replica_1/dense_1/MatMul/MatMul"
    assert scopes(other_replica) == ("net_1", "dense_1_2", "MatMul")
    assert innermost_mark("adam/Square") is None
    assert split_operation("adam/Square:Square") == ("adam/Square", "Square")
    for other in ("KernelAndDeviceFunc::Run", "EagerLocalExecute: Mul", "__inference_f_1:__inference_f_1", "python"):
        assert split_operation(other) is None
