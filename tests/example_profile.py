"""A profile of operations, for tests of what shows or judges one."""

from dataclasses import replace
from typing import Any

from accel_engine.run.diagnostics.model_items import LAYERS, Gap, OperationGroup, OpProfile, ProfiledOperation

PROFILE = OpProfile(
    device="gpu",
    devices=1,
    lanes=2,
    seconds=2.0,
    busy=1.5,
    total=1.6,
    steps=100,
    operations=(
        ProfiledOperation("net/conv/Conv2D", "Conv2D", "conv", 100, 1.0, 4e9, 1e8, "void conv_kernel()"),
        ProfiledOperation("fusion.3", "fusion Relu", "conv", 200, 0.5, 0.0, 2e9),
        ProfiledOperation("MemcpyH2D", "MemcpyH2D", "", 10, 0.1),
    ),
    others=7,
    grouped_by=LAYERS,
    groups=(OperationGroup("conv", 1.5, 4e11), OperationGroup("", 0.1, 0.0)),
    gaps=(Gap(9e-6, 1000, 0.1), Gap(0.3, 2, 0.4)),
    peak_flops=1e12,
    peak_source="a datasheet, float32",
    peak_bytes=9e11,
    bytes_source="the memory's clock and bus width",
    notes=("A note of the profile.",),
    trace="profiles/plugins/profile/1",
)


def profiled(**changes: Any) -> OpProfile:
    """The profile with changes."""
    return replace(PROFILE, **changes)
