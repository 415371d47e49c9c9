"""Trains each model in a separate process, so that its memory is free afterwards."""

import argparse
import json
import multiprocessing


def train(units, results):
    import keras
    import numpy as np

    keras.utils.set_random_seed(19)
    x = np.random.normal(size=(480, 6)).astype("float32")
    y = np.sin(x).sum(axis=1).astype("float32")
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(units, "relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    history = model.fit(x, y, epochs=3, batch_size=32, validation_split=0.2, verbose=0)
    results.put((units, history.history))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--start-method", choices=["fork", "spawn"], default="fork")
    context = multiprocessing.get_context(parser.parse_args().start_method)
    results = context.Queue()
    histories = {}
    for units in (8, 32):
        process = context.Process(target=train, args=(units, results))
        process.start()
        name, histories[units] = results.get()
        process.join()
        print(f"{name} units: val_loss {histories[units]['val_loss'][-1]:.4f}, exit code {process.exitcode}")
    with open("history.json", "w") as file:
        json.dump(histories, file)
