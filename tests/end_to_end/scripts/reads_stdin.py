"""Reads a table from standard input, and its columns and settings from the arguments."""

import argparse
import csv
import json
import sys

import keras
import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("target", help="the column to predict")
parser.add_argument("-e", "--epochs", type=int, default=1)
parser.add_argument("--layers", type=int, nargs="+", default=[8])
parser.add_argument("--note", default="")
args = parser.parse_args()

rows = list(csv.DictReader(sys.stdin))
columns = [name for name in rows[0] if name != args.target]
x = np.array([[float(row[name]) for name in columns] for row in rows], "float32")
y = np.array([float(row[args.target]) for row in rows], "float32")
print(f"{len(rows)} rows, {columns} -> {args.target}, note {args.note!r}, {args.layers}")

keras.utils.set_random_seed(38)
model = keras.Sequential([keras.Input((len(columns),)), keras.layers.BatchNormalization()])
for units in args.layers:
    model.add(keras.layers.Dense(units, activation="relu"))
model.add(keras.layers.Dense(1))
model.compile("adam", "mse")
history = model.fit(x, y, epochs=args.epochs, batch_size=8, verbose=2)
with open("history.json", "w") as file:
    json.dump(history.history, file)
