"""Measures steps per second under each strategy: our compiled loop and the custom loop of TensorFlow's guide.

    python benchmarks/scaling.py [--case mirrored-2 ...] [--work mlp-128 ...] [--rounds 5] [--seconds 2]

The guide's loop is from its page on custom training with ``tf.distribute``: one ``tf.function`` call per step, over
a distributed dataset, summing the loss. Ours returns the loss and accuracy of every step. Both have the same model,
data in memory, optimizer, seed and environment, and are measured in turn. A case with several workers has one process
per worker. The global batch is the same for all cases, so perfect scaling on one machine means equal rates.
"""

import argparse
import contextlib
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from works import WORKS

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@dataclass(frozen=True)
class Case:
    """A strategy with its devices and workers."""

    strategy: str
    devices: int = 1
    workers: int = 1

    def cluster(self, addresses: Sequence[str]) -> dict[str, list[str]]:
        """The cluster of ``TF_CONFIG``; the controlled processes come first."""
        if self.strategy == "parameter-server":
            return {"chief": [addresses[0]], "ps": [addresses[1]], "worker": list(addresses[2:])}
        return {"worker": list(addresses)} if self.workers > 1 else {}

    @property
    def processes(self) -> int:
        """Number of processes."""
        return self.workers + 2 * (self.strategy == "parameter-server")


SENT = 4096
"""Examples for the guide's workers under a coordinator, which are sent with the graph of the pipeline."""

CASES = {
    "default": Case("default"),
    "one-device": Case("one-device"),
    "mirrored-2": Case("mirrored", devices=2),
    "mirrored-4": Case("mirrored", devices=4),
    "central-storage-2": Case("central-storage", devices=2),
    "multi-worker-2": Case("multi-worker", workers=2),
    "parameter-server-2": Case("parameter-server", workers=2),
}


def serve(side: str, work: str, case: Case) -> None:
    """Run as many steps as each line of standard input says, and print the seconds they took."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    from accel_engine.engine_main import tensorflow_import

    tensorflow_import.prepare()
    import tensorflow as tf

    task = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if "ps" in task.get("cluster", {}) and task["task"]["type"] != "chief":
        spec = tf.train.ClusterSpec(task["cluster"])
        if side == "ours" and task["task"]["type"] == "worker":
            from accel_engine import data
            from accel_engine.training.core.worker_data import WorkerDataSource

            examples: Future[Any] = Future()
            examples.set_result(data.load(WORKS[work].data, data.DataOptions()))
            source = WorkerDataSource(examples, "a worker")  # noqa: F841 (TensorFlow keeps a weak reference)
        tf.distribute.Server(spec, task["task"]["type"], task["task"]["index"], protocol="grpc").join()
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * case.devices)
    take = (ours if side == "ours" else guide)(work, case)
    for line in sys.stdin:
        began = time.perf_counter()
        take(int(line))
        print(time.perf_counter() - began, file=answers)


def ours(work: str, case: Case) -> Callable[[int], None]:
    """Set up our loop; returns a function that runs a number of steps."""
    from accel_engine.plan import Plan
    from accel_engine.plan.resolved_plan import resolve
    from accel_engine.training.core.assembly import assemble
    from accel_engine.training.core.feed import Segment
    from accel_engine.training.core.loop import ExecutionMode, Loop
    from accel_engine.training.distributed.coordinated_loop import CoordinatedLoop
    from accel_engine.training.distributed.worker_sync import WorkerSync

    chosen = WORKS[work]
    plan = Plan(model=chosen.model, data=chosen.data, batch_size=chosen.batch, strategy=case.strategy, validation="off")
    assembly = assemble(resolve(plan), tuple(f"CPU:{index}" for index in range(case.devices)), None)
    if assembly.coordinated:
        loop: Loop = CoordinatedLoop(assembly, lambda: False)
    else:
        sync = WorkerSync(assembly.strategy, assembly.cluster) if assembly.cluster else None
        loop = Loop(assembly, ExecutionMode(), sync_count=sync.broadcast if sync else int)
    replicas, batch = assembly.replicas, assembly.step_counts.per_replica_batch
    examples = len(assembly.dataset.train)

    def take(steps: int) -> None:
        order = np.random.default_rng(0).integers(0, examples, (steps, replicas, batch), np.int32)
        for _ in loop.run(Segment(order, steps, replicas * batch), 0):
            pass

    return take


def guide(work: str, case: Case) -> Callable[[int], None]:
    """Set up the guide's loop; returns a function that runs a number of steps."""
    import pkgutil

    import keras
    import tensorflow as tf

    from accel_engine import data, strategies
    from accel_engine.models.build import build
    from accel_engine.plan import Plan
    from accel_engine.plan.resolved_plan import resolve

    chosen = WORKS[work]
    plan = Plan(strategy=case.strategy)
    devices = tuple(f"CPU:{index}" for index in range(case.devices))
    keras.utils.set_random_seed(0)
    strategy = pkgutil.resolve_name(strategies.find(case.strategy).builder)(devices, resolve(plan))
    dataset = data.load(chosen.data, data.DataOptions())
    examples = dataset.train.inputs.astype("float32") / 255
    with strategy.scope():
        from accel_engine.models.loaded_data import describe_data

        model = build(chosen.model, describe_data(dataset, "auto"))
        optimizer = keras.optimizers.Adam()
        optimizer.build(model.trainable_variables)
        loss_object = keras.losses.SparseCategoricalCrossentropy(reduction=None)

    def step(inputs: Any) -> Any:
        x, y = inputs
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(loss_object(y, model(x, training=True)), global_batch_size=chosen.batch)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    @tf.function
    def distributed_step(inputs: Any) -> Any:
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(inputs,)), axis=None)

    def pipeline() -> Any:
        return _pipeline(examples, dataset.train.targets[: len(examples)], chosen.batch)

    if case.strategy == "parameter-server":
        examples = examples[:SENT]
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        sources = iter(
            coordinator.create_per_worker_dataset(lambda: strategy.experimental_distribute_dataset(pipeline()))
        )

        @tf.function
        def worker_step(source: Any) -> Any:
            return strategy.run(step, args=(next(source),))

        def take_coordinated(steps: int) -> None:
            taken = [coordinator.schedule(worker_step, args=(sources,)) for _ in range(steps)]
            coordinator.join()
            sum(loss.fetch() for loss in taken)

        return take_coordinated

    batches = iter(strategy.experimental_distribute_dataset(pipeline()))

    def take(steps: int) -> None:
        total = 0.0
        for _ in range(steps):
            total += distributed_step(next(batches))
        float(total)  # waits for the last step

    return take


def _pipeline(x: Any, y: Any, batch: int) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    pipeline = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=0).batch(batch, drop_remainder=True)
    return pipeline.repeat().prefetch(tf.data.AUTOTUNE).with_options(options)


class Side:
    """The processes of one side of a case."""

    def __init__(self, side: str, work: str, name: str) -> None:
        case = CASES[name]
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(case.processes)]
            addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in sockets]
        cluster = case.cluster(addresses)
        tasks = [(role, index) for role, known in cluster.items() for index in range(len(known))] or [("worker", 0)]
        self._processes = []
        for role, index in tasks:
            task = {"cluster": cluster, "task": {"type": role, "index": index}}
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, __file__, "--serve", side, "--work", work, "--case", name],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    env=os.environ | ({"TF_CONFIG": json.dumps(task)} if cluster else {}),
                )
            )
        self._controlled = self._processes[:1] if "chief" in cluster else self._processes

    def rate(self, steps: int) -> float:
        """Run steps; returns steps per second."""
        for process in self._controlled:
            assert process.stdin
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
        lines = [process.stdout.readline() for process in self._controlled if process.stdout]
        if not all(lines):
            raise SystemExit("a process exited: run it by hand with --serve")
        return steps / max(map(float, lines))

    def close(self) -> None:
        """Kill the processes."""
        for process in self._processes:
            process.kill()
            process.wait()


def compare(work: str, name: str, rounds: int, seconds: float) -> tuple[str, float]:
    """Measure one case; returns a row of the report and our rate."""
    sides = {side: Side(side, work, name) for side in ("ours", "guide")}
    try:
        for side in sides.values():
            side.rate(8)
        steps = max(8, int(seconds * min(side.rate(32) for side in sides.values())))
        for side in sides.values():
            side.rate(steps)  # another number of steps may retrace our graph
        rates: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(rounds):
            for side, process in sides.items():
                rates[side].append(process.rate(steps))
    finally:
        for side in sides.values():
            side.close()
    ratios = [mine / its for mine, its in zip(rates["ours"], rates["guide"], strict=True)]
    mine, its = (statistics.median(rates[side]) for side in sides)
    spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    return f"| `{work}` | {name} | {mine:.1f} | {its:.1f} | {spread}", mine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--work", action="append", choices=WORKS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--serve", choices=("ours", "guide"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.work[0], CASES[arguments.case[0]])
        return
    print(f"Python {platform.python_version()}, {os.cpu_count()} logical CPUs, {time.strftime('%Y-%m-%d')}")
    print("| work | case | ours, steps/s | the guide's loop | ours over it | ours over our default |")
    print("|---|---|---|---|---|---|")
    for work in arguments.work or ("mlp-128", "fashion-cnn-128"):
        alone = 0.0
        for name in arguments.case or CASES:
            line, rate = compare(work, name, arguments.rounds, arguments.seconds)
            alone = alone or rate
            print(f"{line} | {rate / alone:.2f} |", flush=True)


if __name__ == "__main__":
    main()
