"""Latencies that bench measures, beside plain loops of the runtimes' own: ``python benchmarks/inference.py``.

For a convolutional network of 28x28 pixels in each format, both measure in short turns, so that what else the machine
does meets both: bench its runtime (``accel_engine.inference``), and a loop as a tutorial of the runtime has it, with
``time.perf_counter`` around the call. It prints the first quartiles of all latencies, which other programs disturb less
than medians, the medians, and the ratios.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import onnxruntime
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from accel_engine.formats import open_model
from accel_engine.inference.measurement.stability import ClosedLoop

THREADS = 1


def save_model(folder: Path) -> dict[str, Path]:
    """Save a small convolutional network in each format."""
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1), name="image"),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model(np.zeros((1, 28, 28, 1), np.float32))
    names = {"keras": "m.keras", "savedmodel": "m", "tflite": "m.tflite", "onnx": "m.onnx"}
    paths = {kind: folder / name for kind, name in names.items()}
    model.save(paths["keras"])
    model.export(paths["savedmodel"], verbose=False)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(paths["savedmodel"]), ["serving_default"])
    paths["tflite"].write_bytes(converter.convert())
    model.export(paths["onnx"], format="onnx", verbose=False)
    return paths


def own_call(kind: str, path: Path, batch: np.ndarray) -> Callable[[], Any]:
    """One request as the runtime's own documentation makes it."""
    if kind == "keras":
        model = keras.models.load_model(path)
        signature = [tf.TensorSpec((None, *batch.shape[1:]))]  # with a fixed batch size it would be faster
        function = tf.function(lambda x: model(x, training=False), input_signature=signature)
        trace = function.get_concrete_function()  # faster than the function, which searches a trace that fits
        return lambda: trace(tf.constant(batch)).numpy()
    if kind == "savedmodel":
        loaded = tf.saved_model.load(str(path))
        signature = loaded.signatures["serving_default"]
        (name,) = signature.structured_input_signature[1]
        return lambda: (loaded, [each.numpy() for each in signature(**{name: tf.constant(batch)}).values()])
    if kind == "tflite":
        interpreter = Interpreter(str(path), num_threads=THREADS)
        runner = interpreter.get_signature_runner()
        (name,) = runner.get_input_details()
        return lambda: (interpreter, runner(**{name: batch}))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (entry,) = session.get_inputs()
    return lambda: session.run(None, {entry.name: batch})


def loop(call: Callable[[], Any], seconds: float) -> list[float]:
    """The latencies of a plain loop, in microseconds."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - start))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each turn")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 32])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for kind, path in save_model(Path(folder)).items():
            runtime = open_model(path, threads=THREADS)
            (name,) = runtime.inputs
            for size in arguments.batch_sizes:
                batch = np.random.default_rng(0).random((size, 28, 28, 1), np.float32)
                call = own_call(kind, path, batch)
                bench = ClosedLoop(runtime.run, [{name: batch}], size)
                loop(call, 0.1), bench.window(0.1)
                own: list[float] = []
                ours: list[float] = []
                for _ in range(arguments.rounds):
                    own += loop(call, arguments.seconds)
                    ours += (bench.window(arguments.seconds).latencies / 1000).tolist()
                for which, share in (("first quartile", 0.25), ("median", 0.5)):
                    mine, its = np.quantile(ours, share), np.quantile(own, share)
                    figures = f"bench {mine:9.1f} us   own loop {its:9.1f} us   ratio {mine / its:.3f}"
                    print(f"{kind:10} batch {size:3}   {which:14} {figures}", flush=True)


if __name__ == "__main__":
    main()
