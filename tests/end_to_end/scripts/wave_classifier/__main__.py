"""Trains the classifier."""

import argparse
import json
import sys
from pathlib import Path

import keras

from . import data
from .model import build


def main(argv=None):
    parser = argparse.ArgumentParser(prog="wave_classifier")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("history.json"))
    args = parser.parse_args(argv)
    keras.utils.set_random_seed(35)
    waves, labels = data.load()
    model = build(waves.shape[1])
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(waves, labels, epochs=args.epochs, validation_split=0.2, verbose=2)
    args.output.write_text(json.dumps(history.history))
    print("package:", __package__, "name:", __name__, "program:", Path(sys.argv[0]).name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
