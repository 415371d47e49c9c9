"""Prints the devices that TensorFlow finds: ``python -m accel_engine.engine_main.list_tf_devices``.

:mod:`accel_engine.doctor` starts it. The lines it has printed show how far it got before native code hung or aborted.
It allocates no GPU memory.
"""

import gc
import json
import os
import resource
import signal
import time
from importlib.util import find_spec
from typing import Any

from accel_engine.engine_main import tensorflow_import

TIMEOUT_SECONDS = 120
"""Seconds after which the process exits even if native code hangs."""


def main() -> None:
    """Import what an engine imports, in an engine's environment, and print a JSON line after each stage."""
    signal.alarm(TIMEOUT_SECONDS)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C interrupts native code too
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # other output goes to stderr

    def send(**facts: Any) -> None:
        replies.write(json.dumps(facts) + "\n")

    tensorflow_import.prepare()
    if spec := find_spec("tensorflow"):
        send(file=spec.origin or "".join(spec.submodule_search_locations or ()))
    begun = time.monotonic()
    gc.disable()  # as an engine does meanwhile
    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    built = [*build.get("cuda_compute_capabilities", ())]
    send(version=tf.__version__, cuda=build.get("cuda_version", ""), built=built)
    import keras

    send(keras=keras.__version__, seconds=time.monotonic() - begun)
    gpus = tf.config.list_physical_devices("GPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    send(
        gpus=[known.get("device_name", gpu.name) for gpu, known in zip(gpus, details, strict=True)],
        capabilities=[".".join(map(str, known.get("compute_capability", ()))) for known in details],
    )


if __name__ == "__main__":
    main()
