"""What the plan came to, in words."""

from accel_engine.events import WorkCounted
from accel_tui.state import RunState
from accel_tui.widgets.facts import RunFacts


def test_what_a_step_computes_and_what_the_devices_could() -> None:
    def said(**values: object) -> list[str]:
        work = WorkCounted.parse({"time": 1.0, **values})
        return [" ".join(line.split()) for line in RunFacts().words(RunState(work=work)).plain.splitlines()]

    assert said(flops=7.7575e9, peak=312e12, source="NVIDIA A100 datasheet, bfloat16") == [
        "operations 7.76 GFLOP a step",
        "peak 312 TFLOP/s, NVIDIA A100 datasheet, bfloat16",
    ]
    assert said(flops=7.7575e9, peak=None, reason="no peak is known") == [
        "operations 7.76 GFLOP a step",
        "peak no peak is known",
    ]
    assert said(flops=None, peak=1e12, reason="it loops") == ["operations not counted: it loops"]
