"""Measures the validation accuracy of a catalogue model after a few epochs, over several seeds.

    python benchmarks/quality.py --data digits FILE.npz ... [--epochs 3] [--seeds 3] [--pooling max average]

Trains with ``accel-tui train``. ``--pooling`` replaces a model's global pooling layer.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

VARIANTS = {
    "max": "layers.GlobalMaxPooling2D()(x)",
    "average": "layers.GlobalAveragePooling2D()(x)",
    "both": "layers.Concatenate()([layers.GlobalMaxPooling2D()(x), layers.GlobalAveragePooling2D()(x)])",
}

SOURCE = """
import keras
from keras import layers
from accel_engine.models.build import build as build_named

def build(input_shape, classes):
    named = build_named("{model}", input_shape, classes)
    inputs = x = keras.Input(input_shape)
    for layer in named.layers:
        if "GlobalAveragePooling2D" in type(layer).__name__ or "GlobalMaxPooling2D" in type(layer).__name__:
            x = {pooling}
        elif isinstance(layer, layers.Dense):
            x = layers.Dense.from_config(layer.get_config())(x)  # it may have more inputs now
        else:
            x = layer(x)
    return keras.Model(inputs, x)
"""


def accuracy(model: str, data: str, epochs: int, seed: int) -> float:
    """The validation accuracy at the end of one run."""
    command = [sys.executable, "-m", "accel_tui", "train", "--json", "--model", model, "--data", data]
    command += ["--epochs", str(epochs), "--seed", str(seed), "--validation", "end", "--learning-rate", "1e-3"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return float(next(event["accuracy"] for event in events if event["event"] == "validated"))


def main() -> None:
    """Print a table row for each dataset and pooling."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["digits"])
    parser.add_argument("--model", default="cnn")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pooling", nargs="+", choices=[*VARIANTS, "own"], default=["own"])
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["ACCEL_TUI_HOME"] = home
        for data in wanted.data:
            for pooling in wanted.pooling:
                model = wanted.model
                if pooling != "own":
                    source = Path(home, f"{pooling}.py")
                    source.write_text(SOURCE.format(model=wanted.model, pooling=VARIANTS[pooling]))
                    model = f"{source}:build"
                found = [accuracy(model, data, wanted.epochs, seed) for seed in range(wanted.seeds)]
                mean, span = statistics.fmean(found), f"{min(found):.3f} to {max(found):.3f}"
                print(f"| {Path(data).stem} | {pooling} | {mean:.3f} ({span}) |", flush=True)


if __name__ == "__main__":
    main()
