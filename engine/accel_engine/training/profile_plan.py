"""Traces steps of a plan that no run takes."""

import tempfile
import time
from pathlib import Path

from accel_engine.devices import detect
from accel_engine.errors import file_errors
from accel_engine.requests.profile_plan import ProfilePhase, ProfileRequest
from accel_engine.requests.protocol.request import Send, reports
from accel_engine.run.diagnostics import OpProfile
from accel_engine.run.directory.run_paths import PROFILES
from accel_engine.training.core import device_visibility
from accel_engine.training.model_analysis.operation_costs import GraphCosts
from accel_engine.training.plan_stepper import PlanStepper
from accel_engine.training.reporting.op_profiler import FULL, MAX_OPERATIONS, Trace, reduced, shorter, trace_facts

WARM_UP_SECONDS = 1.0
"""Seconds of steps before the trace, in which the length of chunks adapts; they do not count."""

TURN_SECONDS = 0.2
"""About how many seconds of steps are taken between two looks at the clock."""

INITIAL = "These are steps from the initial weights, in a separate process."
WITHOUT_XLA = "The plan leaves XLA to the run, which tries it later: these steps are without XLA."


def profile_plan(request: ProfileRequest, send: Send) -> OpProfile:
    """Take and trace steps of a plan.

    Raises:
        AccelError: The plan cannot be trained, or the trace cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="accel-tui-profile-") as folder:
        send(ProfilePhase("building the model and compiling a step"))
        stepper = PlanStepper(request.plan, Path(folder), progress=reports(send))
        try:
            return _profile(request, send, stepper, Path(folder))
        finally:
            stepper.close()


def _profile(request: ProfileRequest, send: Send, stepper: PlanStepper, folder: Path) -> OpProfile:
    assembly = stepper.assembly
    send(ProfilePhase(f"tracing steps for {request.seconds:g} s"))
    rate = stepper.take_for(WARM_UP_SECONDS).steps_per_second
    most = max(1, MAX_OPERATIONS // max(1, len(GraphCosts(stepper.graphs))))
    turn = min(most, max(1, round(rate * min(TURN_SECONDS, request.seconds))))
    directory = request.directory or folder
    trace, steps = Trace(directory / PROFILES), 0
    end = time.monotonic() + request.seconds
    try:
        while not steps or (time.monotonic() < end and steps + turn <= most):
            steps += stepper.take(turn).steps
        is_full = time.monotonic() < end
    finally:
        written = trace.end()
    send(ProfilePhase("reducing the trace"))
    devices = device_visibility.describe_devices(assembly.devices, detect())
    hardware = device_visibility.hardware_names(devices, detect())
    without_xla = request.plan.xla == "auto" and not assembly.on_tpu
    notes = (INITIAL, *([WITHOUT_XLA] if without_xla else []), *([shorter(FULL)] if is_full else []))
    with file_errors("the trace cannot be read"):
        facts = trace_facts(assembly, hardware, steps, notes)
        return reduced(written, request.directory, assembly, stepper.graphs, facts)
