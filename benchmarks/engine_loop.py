"""The engine's training loop of a plan, without a run. Import it after ``environment.prepare``."""

from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.core.assembly import Assembly, assemble
from accel_engine.training.core.batches import epoch_orders
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ExecutionMode, Loop
from accel_engine.training.core.step_rate import ChunkRate


def make_loop(plan: Plan, mode: ExecutionMode) -> tuple[Loop, Segment, Assembly]:
    """A loop on one CPU, and the steps of its first epoch."""
    assembly = assemble(resolve(plan), ("CPU:0",), None)
    order = next(epoch_orders(assembly.step_counts, len(assembly.dataset.train), seed=0, epoch=0))
    return Loop(assembly, mode), Segment(order, len(order), plan.batch_size), assembly


def measure_rate(loop: Loop, segment: Segment, seconds: float) -> float:
    """Run steps for about ``seconds``; returns steps per second, without the first chunk, a warm-up."""
    rate = ChunkRate(warm_up=True)
    while rate.seconds < seconds:
        for chunk in loop.run(segment, 0):
            rate.add(chunk)
            if rate.seconds >= seconds:
                break
    return rate.value
