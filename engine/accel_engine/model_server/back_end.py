"""The back end: a process that loads a model, warms it up, and computes batches until its front end is gone.

``python -m accel_engine.model_server.back_end FOLDER DESCRIPTOR THREADS``
"""

import os
import resource
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.errors import AccelError
from accel_engine.formats import open_model
from accel_engine.inference.runtime import Runtime
from accel_engine.model_server import back_end_messages
from accel_engine.model_server.service import Service, load_examples, model_path, read_service
from accel_engine.user_code import reason


def main(folder: Path, link: socket.socket, threads: int) -> None:
    """Serve until the front end closes the link.

    Args:
        folder: The folder of the model.
        link: Leads to the front end.
        threads: Threads of an operation.
    """
    for each in (signal.SIGINT, signal.SIGTERM):  # the front end decides when this ends
        signal.signal(each, signal.SIG_IGN)
    began = time.monotonic()
    try:
        service = read_service(folder)
        runtime = _opened(folder, service, threads)
        if problem := _other_signature(service, runtime):
            back_end_messages.send(link, {"problem": problem})
            return
        _warm_up(folder, service, runtime)
    except Exception as error:  # noqa: BLE001 (libraries raise anything)
        back_end_messages.send(link, {"problem": str(error) if isinstance(error, AccelError) else reason(error)})
        return
    back_end_messages.send(link, {"seconds": time.monotonic() - began})
    head: dict[str, Any]
    while (message := back_end_messages.receive(link)) is not None:
        try:
            start = time.perf_counter()
            outputs = runtime.run(message[1])
            head, arrays = {"seconds": time.perf_counter() - start, "memory": _memory()}, outputs
        except Exception as error:  # noqa: BLE001
            head, arrays = {"problem": str(error) if isinstance(error, AccelError) else reason(error)}, {}
        try:
            back_end_messages.send(link, head, arrays)
        except OSError:
            return


def _opened(folder: Path, service: Service, threads: int) -> Runtime:
    if service.model.format == "savedmodel":
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)  # batches are computed one after the other
    return open_model(model_path(folder, service), threads=threads)


def _other_signature(service: Service, runtime: Runtime) -> str:
    """The difference between the model's inputs and outputs and their description; empty if there is none."""
    for described, found in ((service.specs, runtime.inputs), (service.output_specs, runtime.outputs)):
        if described != dict(found):
            texts = [
                "; ".join(f"{name}: {each}" for name, each in sorted(specs.items())) for specs in (described, found)
            ]
            return f"the model has {texts[1]}, not {texts[0]} as its description says"
    return ""


def _warm_up(folder: Path, service: Service, runtime: Runtime) -> None:
    """Compute a batch of each size, so that no request waits for a first one."""
    inputs = load_examples(folder)[0]
    count = len(next(iter(inputs.values())))
    for size in service.batch_sizes:
        rows = np.arange(size) % count
        runtime.run({name: array[rows] for name, array in inputs.items()})


def _memory() -> int:
    """Resident bytes; where the system is not Linux, the most so far."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):  # not Linux: the peak
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3]))
