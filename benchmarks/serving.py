"""A model behind servers: ``python benchmarks/serving.py ONNX_FOLDER [SAVEDMODEL_FOLDER] [--side NAME=PYTHON ...]``.

The folders are what ``accel-tui deploy RUN --to FOLDER`` keeps of a model: ``service.json`` and the model. All servers
are started, then take turns: requests of 1 and of 32 examples as JSON, over 1 and over 32 connections that stay open,
each with the next request once it has an answer. Beside them is a loop in Python that calls TensorFlow's function of
the SavedModel, without any server. NAME is a function of ``serving_side.py``, and PYTHON has its library:

    kserve=VENV/bin/python (kserve, onnxruntime)     litserve=VENV/bin/python (litserve, onnxruntime)
    mlflow=VENV/bin/python (mlflow, onnx, onnxruntime)     bare=.venv/bin/python

It prints the median over the rounds of the requests per second, and of the p50 and p99 in milliseconds.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from accel_engine.model_server.service import load_examples, model_path, read_service

SIZES, CONNECTIONS = (1, 32), (1, 32)


async def load(port: int, path: str, body: bytes, connections: int, seconds: float) -> tuple[float, float, float]:
    """Requests per second, and p50 and p99 in milliseconds."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    times: list[float] = []
    began = time.perf_counter()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (start := time.perf_counter()) < began + seconds or not times:
            writer.write(request)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert answer.startswith(b"http/1.1 200"), answer
            length = int(answer.partition(b"content-length:")[2].partition(b"\r")[0])
            await reader.readexactly(length)
            times.append(time.perf_counter() - start)
        writer.close()

    await asyncio.gather(*(client() for _ in range(connections)))
    rate = len(times) / (time.perf_counter() - began)
    p50, p99 = (1000 * float(np.quantile(times, share)) for share in (0.5, 0.99))
    return rate, p50, p99


def loop(folder: Path, x: np.ndarray, seconds: float, size: int) -> tuple[float, float, float]:
    """The same of TensorFlow's own function, called one request after the other."""
    from accel_engine.inference.savedmodel_runtime import SavedModelRuntime

    loop.runtime = getattr(loop, "runtime", None) or SavedModelRuntime(model_path(folder, read_service(folder)))
    batch, times, began = {"inputs": x[:size]}, [], time.perf_counter()
    while (start := time.perf_counter()) < began + seconds or not times:
        loop.runtime.run(batch)
        times.append(time.perf_counter() - start)
    p50, p99 = (1000 * float(np.quantile(times, share)) for share in (0.5, 0.99))
    return len(times) / (time.perf_counter() - began), p50, p99


def wait_for(port: int, body: bytes, path: str) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            asyncio.run(load(port, path, body, 1, 0.01))
        except (OSError, AssertionError, asyncio.IncompleteReadError):
            time.sleep(0.2)
        else:
            return
    raise SystemExit(f"no server answers at port {port}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("onnx", type=Path)
    parser.add_argument("savedmodel", type=Path, nargs="?")
    parser.add_argument("--side", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a turn")
    arguments = parser.parse_args()
    x = load_examples(arguments.onnx)[0]["inputs"]
    bodies = {size: json.dumps({"instances": x[:size].tolist()}).encode() for size in SIZES}
    onnx = model_path(arguments.onnx, read_service(arguments.onnx))
    sides: dict[str, tuple[int, str]] = {}
    processes, port = [], 8801
    for side in arguments.side:
        name, _, python = side.partition("=")
        command = [python, str(Path(__file__).parent / "serving_side.py"), name, str(onnx), str(port)]
        processes.append(
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        )
        path = {"kserve": "/v1/models/served:predict", "litserve": "/predict", "mlflow": "/invocations"}.get(name, "/")
        sides[name], port = (port, path), port + 1
    for folder in filter(None, (arguments.onnx, arguments.savedmodel)):
        service = read_service(folder)
        command = [sys.executable, "-m", "accel_engine.model_server", str(folder), "--port", str(port)]
        processes.append(subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True))
        sides[f"accel-tui, {service.model.format}"] = port, f"/v1/models/{service.name}:predict"
        port += 1
    found: dict[tuple[str, int, int], list[tuple[float, float, float]]] = defaultdict(list)
    try:
        for port, path in sides.values():
            wait_for(port, bodies[1], path)
        for _ in range(arguments.rounds):
            for connections in CONNECTIONS:
                for size in SIZES:
                    for name, (port, path) in sides.items():
                        figures = asyncio.run(load(port, path, bodies[size], connections, arguments.seconds))
                        found[name, connections, size].append(figures)
                    if arguments.savedmodel and connections == 1:
                        figures = loop(arguments.savedmodel, x, arguments.seconds, size)
                        found["TensorFlow's function, no server", 1, size].append(figures)
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):  # LitServe leaves processes
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            for process in processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
    print("| server | connections | examples | requests/s | p50, ms | p99, ms |\n|---|---|---|---|---|---|")
    for (name, connections, size), figures in sorted(found.items(), key=lambda each: (each[0][1:], each[0][0])):
        rate, p50, p99 = (statistics.median(column) for column in zip(*figures, strict=True))
        print(f"| {name} | {connections} | {size} | {rate:,.0f} | {p50:.2f} | {p99:.2f} |")


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main()
