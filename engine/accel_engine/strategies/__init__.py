"""The catalogue of distribution strategies, without TensorFlow.

:mod:`accel_engine.plan.placement` selects the devices that a plan trains on. The ``tf.distribute`` strategies are
created in :mod:`accel_engine.training.distributed.strategy_builders`, which only the engine process imports.
"""

from dataclasses import dataclass
from typing import Any

from accel_engine.errors import FieldValue, PlanError, Words
from accel_engine.text import suggestion


@dataclass(frozen=True, slots=True)
class StrategyEntry:
    """A strategy in the catalogue."""

    name: str
    """Its name in plans."""
    summary: str
    """One-line description."""
    needs: Words
    """Its requirements, to complete "needs ..."."""
    builder: str
    """``module:function``; called with TensorFlow's logical device names and the resolved plan."""
    minimum_devices: int = 1
    """The fewest devices per process."""
    maximum_devices: int = 0
    """The most devices per process; 0 for all."""
    reductions: tuple[str, ...] = ("auto",)
    """Supported methods of summing gradients over replicas."""
    processes: bool = False
    """Whether it runs in several processes, which may be on several machines."""
    staged: bool = False
    """Whether each device has a part of the model, and all together are one replica."""
    coordinated: bool = False
    """Whether a coordinator schedules whole steps on workers."""
    kind: str = ""
    """The only kind of device it supports; empty for GPUs and CPUs."""
    precision: str = "float32"
    """Keras' dtype policy of plans with the precision ``auto``."""


def _entry(name: str, summary: str, needs: Words, **options: Any) -> StrategyEntry:
    """The entry of a strategy, with the builder of the same name."""
    builder = f"accel_engine.training.distributed.strategy_builders:{name.replace('-', '_')}"
    return StrategyEntry(name, summary, needs, builder, **options)


CATALOGUE: dict[str, StrategyEntry] = {
    entry.name: entry
    for entry in (
        _entry(
            "default",
            "One device without distribution: the first GPU, or the CPU if there is none",
            ("nothing",),
            maximum_devices=1,
        ),
        _entry(
            "one-device",
            "One selected device, with the same code path as several devices",
            ("one device",),
            maximum_devices=1,
        ),
        _entry(
            "mirrored",
            "A replica of the model on every device; gradients are summed at each step",
            ("two devices of the same kind, or ", FieldValue("virtual_cpus", "2")),
            minimum_devices=2,
            reductions=("auto", "nccl", "hierarchical-copy", "one-device"),
        ),
        _entry(
            "pipeline",
            "A part of the model on each device, for a model that is too large for one",
            ("two devices of the same kind, or ", FieldValue("virtual_cpus", "2")),
            minimum_devices=2,
            staged=True,
        ),
        _entry(
            "tpu",
            "A replica of the model on every TPU core; gradients are summed at each step",
            ("a TPU in this machine, or one set with ", FieldValue("tpu"), ", COLAB_TPU_ADDR or TPU_NAME"),
            kind="tpu",
            precision="mixed_bfloat16",
        ),
        _entry(
            "central-storage",
            "Weights in host memory, computation on every device",
            ("two devices of the same kind, or ", FieldValue("virtual_cpus", "2")),
            minimum_devices=2,
        ),
        _entry(
            "multi-worker",
            "A replica on every device of several processes, on one or more machines",
            ("TF_CONFIG, a Slurm job started with srun, or ", FieldValue("local_workers", "2")),
            reductions=("auto", "nccl", "ring"),
            processes=True,
        ),
        _entry(
            "parameter-server",
            "Weights on parameter servers; workers run steps asynchronously",
            ("TF_CONFIG with a chief, workers and parameter servers (ps), or ", FieldValue("local_workers", "1")),
            maximum_devices=1,
            processes=True,
            coordinated=True,
        ),
    )
}
"""Every strategy, simplest first."""


def find(name: str) -> StrategyEntry:
    """Find a strategy by name.

    Raises:
        PlanError: There is no such strategy.
    """
    if entry := CATALOGUE.get(name.lower().replace("_", "-")):
        return entry
    raise PlanError("strategy", name, f"no such strategy; {suggestion(name, CATALOGUE)}")
