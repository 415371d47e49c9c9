"""Measures how much compiled metrics slow a training step down.

    python benchmarks/metrics.py [--rounds 5] [--seconds 1]

A small classifier, batch 32, and a convolutional network, batch 128, of images of ten classes: without metrics, and
with each metric computed at every step, whatever the size of its state. All take turns in one process.
"""

import argparse
import os
import statistics
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
from keras import layers, metrics

CLASSES = 10

METRICS = {
    "none": list,
    "accuracy": lambda: ["accuracy"],
    "top-5 accuracy": lambda: [metrics.SparseTopKCategoricalAccuracy(5)],
    "accuracy, top-5 accuracy, cross-entropy": lambda: [
        "accuracy",
        metrics.SparseTopKCategoricalAccuracy(5),
        "sparse_categorical_crossentropy",
    ],
    "mean IoU (100 values)": lambda: [metrics.MeanIoU(CLASSES, sparse_y_pred=False)],
    "AUC (800 values)": lambda: [Auc()],
}

WORKS = {"perceptron, batch 32": ("perceptron", 32), "convolutional network, batch 128": ("convolutional", 128)}


class Auc(metrics.AUC):
    """The area under the curve of class 0."""

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch."""
        super().update_state(keras.ops.equal(y_true, 0), y_pred[:, :1], sample_weight)


def perceptron() -> keras.Model:
    """One hidden layer."""
    return compiled([layers.Flatten(), layers.Dense(128, activation="relu")])


def convolutional() -> keras.Model:
    """Two convolutions."""
    return compiled(
        [
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Flatten(),
        ]
    )


def compiled(hidden: list[keras.Layer]) -> keras.Model:
    """A model with the metrics that the environment names."""
    model = keras.Sequential([keras.Input((28, 28, 1)), *hidden, layers.Dense(CLASSES, activation="softmax")])
    chosen = METRICS[os.environ["METRICS"]]()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=chosen)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds per turn")
    arguments = parser.parse_args()

    from accel_engine.engine_main import tensorflow_import

    tensorflow_import.prepare()
    from accel_engine.plan import Plan
    from accel_engine.training.core import step
    from accel_engine.training.core.loop import ExecutionMode
    from engine_loop import make_loop, measure_rate

    step.MAX_STATE = 10**9
    print("| metrics | work | ms per step | time of a step / without metrics |")
    print("|---|---|---|---|")
    for work, (function, batch) in WORKS.items():
        loops = {}
        for name in METRICS:
            os.environ["METRICS"] = name
            plan = Plan(
                model=f"{Path(__file__).resolve()}:{function}",
                data=f"synthetic:28x28x1:{CLASSES}:6400",
                batch_size=batch,
                epochs=1,
                validation="off",
            )
            loop, segment, _ = make_loop(plan, ExecutionMode())
            measure_rate(loop, segment, arguments.seconds / 2)
            loops[name] = loop, segment
        times = {name: [] for name in METRICS}
        for _ in range(arguments.rounds):
            for name, (loop, segment) in loops.items():
                times[name].append(1000 / measure_rate(loop, segment, arguments.seconds))
        for name, own in times.items():
            ratios = [mine / bare for mine, bare in zip(own, times["none"], strict=True)]
            spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
            print(f"| {name} | {work} | {statistics.median(own):.3f} | {statistics.median(ratios):.2f} ({spread}) |")


if __name__ == "__main__":
    main()
