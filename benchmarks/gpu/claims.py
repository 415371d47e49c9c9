"""Checks what is claimed of devices, one claim per process, and prints a JSON object.

    python benchmarks/gpu/claims.py CLAIM

Claims: ``hidden-context`` and ``second-gpu`` (D1), ``failed-xla`` (D3), ``busy GIB`` (D4), ``costs`` of readings, and
``evaluate`` on a GPU and the CPU.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

HOLDER = """
import sys, time
import tensorflow as tf
tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
held = tf.zeros([int(float(sys.argv[1]) * (1 << 28))])
print(len(held), flush=True)
time.sleep(120)
"""
"""Another program, which holds memory of the first GPU and computes nothing."""

QUERIED = 10
"""How often each reading is repeated."""


def used() -> list[tuple[int, int]]:
    """MiB in use of each GPU, and the number of processes that compute on it."""
    import pynvml

    pynvml.nvmlInit()
    gpus = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    return [
        (pynvml.nvmlDeviceGetMemoryInfo(gpu).used >> 20, len(pynvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu)))
        for gpu in gpus
    ]


def hidden_context(_: argparse.Namespace) -> dict[str, Any]:
    """D1: what describing the devices opens on a GPU that the plan has hidden."""
    import tensorflow as tf

    from accel_engine.private_names.tensorflow_names import local_devices

    tf.config.set_visible_devices([], "GPU")
    tf.zeros([1]).numpy()
    before, names, after = used(), sorted(local_devices()), used()
    grown = max(new[0] - old[0] for old, new in zip(before, after, strict=True))
    return {"before": before, "after": after, "text": f"found {', '.join(names)}; {grown} MiB more in use after it"}


def second_gpu(_: argparse.Namespace) -> dict[str, Any]:
    """D1: what a run on the last GPU meets."""
    from accel_engine.devices import detect
    from accel_engine.plan import Plan
    from accel_engine.training.plan_stepper import PlanStepper

    last = detect().of_kind("gpu")[-1].id
    before = used()
    plan = Plan(model="mlp", data="digits", devices=(last,), xla="off")
    with closing(PlanStepper(plan, Path(tempfile.mkdtemp()))) as stepper:
        stepper.take(20)
        after = used()
    grown = [new[0] - old[0] for old, new in zip(before, after, strict=True)]
    return {"before": before, "after": after, "text": f"20 steps on {last}; MiB more in use by GPU: {grown}"}


def failed_xla(_: argparse.Namespace) -> dict[str, Any]:
    """D3: what two runs, one after the other, say of XLA, of which the first cannot compile."""
    broken = {"XLA_FLAGS": "--xla_gpu_cuda_data_dir=/nonexistent", "PATH": "/nonexistent"}
    said = [_tried(broken), _tried({})]
    return {"said": said, "text": f"first: {said[0]}; second: {said[1]}"}


def _tried(variables: dict[str, str]) -> str:
    """What a run says about XLA."""
    from accel_engine import run
    from accel_engine.events import XlaTried
    from accel_engine.plan import Plan
    from accel_engine.process import engine_process

    directory = run.create(
        Plan(model="mlp", data="synthetic:28x28x1:10:20000", epochs=10**6, validation="off", time_limit="45s")
    )
    engine = engine_process.start_engine(directory, variables)
    engine.wait(200)
    with closing(run.RunReader(directory)) as reader:
        events = [event for event in reader.poll().events if isinstance(event, XlaTried)]
    return "; ".join(map(_of_trial, events)) or "no trial of XLA"


def _of_trial(trial: Any) -> str:
    """What an event of a trial of XLA says."""
    how = "remembered" if trial.remembered else "tried"
    return f"{how}, {trial.reason or f'{trial.compiled:.0f} steps/s with XLA, {trial.plain:.0f} without'}"


def busy(arguments: argparse.Namespace) -> dict[str, Any]:
    """D4: who the queue says uses a GPU on which an idle process holds some memory."""
    from accel_engine.devices.nvidia_gpu import NvidiaProbe
    from accel_engine.run_queue.free_devices import MachineReader

    words = [sys.executable, "-c", HOLDER, str(arguments.gib)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as holder:
        try:
            assert holder.stdout is not None
            if not holder.stdout.readline():
                raise SystemExit("the other program could not hold the memory")
            with MachineReader([NvidiaProbe()]) as machine:
                machine.in_use()
                time.sleep(6)
                found = machine.in_use()
        finally:
            holder.kill()
    return {"in_use": found, "text": "; ".join(f"{gpu}: {reason or 'free'}" for gpu, reason in found.items())}


def costs(_: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of each reading."""
    import pynvml

    from accel_engine.devices.nvidia_queries import QUERIES

    pynvml.nvmlInit()
    gpu, found = pynvml.nvmlDeviceGetHandleByIndex(0), {}
    for query in QUERIES:
        name = query.units[0][0]
        try:
            began = time.perf_counter()
            for _ in range(QUERIED):
                query.read(pynvml, gpu)
            found[name] = round(1e3 * (time.perf_counter() - began) / QUERIED, 3)
        except pynvml.NVMLError as error:
            found[name] = str(error)
    return {"milliseconds": found, "text": ", ".join(f"{name} {value}" for name, value in found.items())}


def evaluate(_: argparse.Namespace) -> dict[str, Any]:
    """The metrics of a run as ``accel-tui evaluate`` computes them on each device."""
    accel = [sys.executable, "-m", "accel_tui"]
    train = ["train", "--model", "cnn", "--data", "digits", "--epochs", "1", "--devices", "cpu:0"]
    subprocess.run([*accel, *train], check=True, stdout=subprocess.DEVNULL)
    found = {}
    for device in ("cpu", "auto", "gpu:0"):
        words = [*accel, "evaluate", "last", "--device", device, "--json"]
        answer = json.loads(
            subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
        )
        found[device] = answer["device"], answer["metrics"]
    said = (f"{wanted} on {used}: loss {metrics['loss']:.6f}" for wanted, (used, metrics) in found.items())
    return {"metrics": found, "text": "; ".join(said)}


CLAIMS = {
    "hidden-context": hidden_context,
    "second-gpu": second_gpu,
    "failed-xla": failed_xla,
    "busy": busy,
    "costs": costs,
    "evaluate": evaluate,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("claim", choices=CLAIMS)
    parser.add_argument("gib", nargs="?", type=float, default=1.0, help="GiB that the other program holds")
    arguments = parser.parse_args()
    os.environ.setdefault("ACCEL_TUI_HOME", tempfile.mkdtemp(prefix="accel-tui-benchmark-"))
    if arguments.claim in ("hidden-context", "second-gpu"):  # the others compute in other processes
        from accel_engine.engine_main import tensorflow_import

        tensorflow_import.prepare()
    print(json.dumps({"claim": arguments.claim, **CLAIMS[arguments.claim](arguments)}), flush=True)


if __name__ == "__main__":
    main()
