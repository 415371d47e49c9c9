"""The peak memory of a real training lies within its estimated range."""

import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from accel_engine.devices import detect
from accel_engine.plan import Plan
from accel_engine.plan.memory_estimate import Training, data_bytes, estimate_memory
from accel_engine.plan.resolved_plan import resolve_to_train
from accel_engine.process import engine_process
from accel_engine.process.engine_call import ask
from accel_engine.process.start_run import prepare_run
from accel_engine.requests.describe_model import ModelRequest


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak of Linux")
@pytest.mark.parametrize(
    "plan",
    [
        Plan(model="cnn", data="synthetic:64x64x3:10:500", batch_size=128, steps_per_epoch=4, epochs=1, xla="off"),
        pytest.param(
            Plan(model="mlp", data="synthetic:96x96x3:10:300", optimizer="sgd", steps_per_epoch=4, epochs=1, xla="off"),
            marks=pytest.mark.campaign,
        ),
    ],
    ids=["activations", "weights"],
)
def test_the_peak_of_a_new_process_is_within_the_range(plan: Plan) -> None:
    resolved = resolve_to_train(plan, detect().devices)
    assert resolved.placement is not None
    training = Training(
        plan, ask(ModelRequest(plan)), plan.batch_size, resolved.placement, data_bytes(resolved.data) or 0
    )
    estimate = estimate_memory(training)
    process = engine_process.start_engine(prepare_run(plan))
    peak = 0
    while process.poll() is None:
        peak = max(peak, peak_memory(process.pid))
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    assert process.returncode == 0
    assert estimate.low <= peak <= estimate.high, estimate.parts


def peak_memory(pid: int) -> int:
    """Bytes that a process has taken at most; not its ``ru_maxrss``, which includes its parent's."""
    with suppress(OSError):
        if found := re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
            return int(found[1]) * 1024
    return 0
