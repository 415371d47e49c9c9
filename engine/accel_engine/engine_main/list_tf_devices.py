"""Prints the devices that TensorFlow finds: ``python -m accel_engine.engine_main.list_tf_devices [--deep|--xla]``.

:mod:`accel_engine.doctor` starts it. The lines it has printed show how far it got before native code hung or aborted.
Without options it allocates no GPU memory; with ``--deep``, every device computes something of each kind. With
``--xla``, the CPU alone runs what XLA has compiled, which tells whether XLA accepts the flags of the environment.
"""

import gc
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeAlias

from accel_engine.devices.cuda_visible_devices import VISIBLE
from accel_engine.engine_main import tensorflow_import

TIMEOUT_SECONDS = 120
"""Seconds after which the process exits even if native code hangs; its starter waits for less."""

DEEP = "--deep"
"""The option with which the devices compute."""

XLA = "--xla"
"""The option with which only XLA is tried, on the CPU."""


def main() -> None:
    """Import what an engine imports, in an engine's environment, and print a JSON line after each stage."""
    signal.alarm(TIMEOUT_SECONDS)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C interrupts native code too
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # other output goes to stderr

    def send(**facts: Any) -> None:
        replies.write(json.dumps(facts) + "\n")

    only_xla = XLA in sys.argv[1:]
    tensorflow_import.prepare()
    if only_xla:
        os.environ[VISIBLE] = "-1"  # XLA's flags are the same for all devices, and a run may be using the GPUs
    if spec := find_spec("tensorflow"):
        send(file=spec.origin or "".join(spec.submodule_search_locations or ()))
    begun = time.monotonic()
    gc.disable()  # as an engine does meanwhile
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    built = [*build.get("cuda_compute_capabilities", ())]
    send(version=tf.__version__, cuda=build.get("cuda_version", ""), built=built)
    if only_xla:
        _compute(tf, ["CPU:0"], send, _xla_kinds(tf))
        return
    import keras

    send(keras=keras.__version__, seconds=time.monotonic() - begun)
    gpus = tf.config.list_physical_devices("GPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    send(
        gpus=[known.get("device_name", gpu.name) for gpu, known in zip(gpus, details, strict=True)],
        capabilities=[".".join(map(str, known.get("compute_capability", ()))) for known in details],
    )
    if DEEP in sys.argv[1:]:
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, enable=True)
        _compute(tf, [f"GPU:{index}" for index in range(len(gpus))] or ["CPU:0"], send, _all_kinds(tf))


_Kinds: TypeAlias = tuple[tuple[str, Callable[[], Any], float], ...]
"""Computations: what each is, the function, and its right result."""


def _all_kinds(tf: Any) -> _Kinds:
    def product() -> Any:
        return tf.linalg.matmul(tf.ones((64, 64)), tf.ones((64, 64)))[0, 0]

    def convolution() -> Any:
        return tf.nn.conv2d(tf.ones((8, 16, 16, 8)), tf.ones((1, 1, 8, 8)), 1, "SAME")[0, 0, 0, 0]

    return (("a matrix product", product, 64.0), ("a convolution", convolution, 8.0), *_xla_kinds(tf))


def _xla_kinds(tf: Any) -> _Kinds:
    compiled = tf.function(lambda: tf.reduce_sum(tf.ones((64,)) + 1.0), jit_compile=True)
    return (("a function compiled by XLA", compiled, 128.0),)


def _compute(tf: Any, devices: list[str], send: Callable[..., None], kinds: _Kinds) -> None:
    """Let devices compute, and tell before each computation what is tried, and after it what was done."""
    done = []
    for device in devices:
        for name, compute, right in kinds:
            send(trying=f"{name} on {device}")
            begun = time.monotonic()
            with tf.device(device):
                found = float(compute())
            if found != right:
                raise ArithmeticError(f"{name} on {device} gives {found}, not {right}")
            done.append(f"{name} on {device} in {time.monotonic() - begun:.1f} s")
            send(computed=done)
    send(trying="")


if __name__ == "__main__":
    main()
