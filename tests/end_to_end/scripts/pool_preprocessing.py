"""Prepares spectra of sounds in a pool of processes, then trains on them."""

import argparse
import json
import multiprocessing
import os

import numpy as np

RATE = 2000


def spectrum(seed):
    """Make the sound of a string or of a drum, and return its spectrum."""
    rng = np.random.default_rng(seed)
    time = np.arange(RATE // 4) / RATE
    label = seed % 2
    tone = np.sin(2 * np.pi * rng.uniform(150, 300) * time) if label else rng.normal(size=time.size)
    sound = tone * np.exp(-time * rng.uniform(2, 20)) + 0.3 * rng.normal(size=time.size)
    magnitudes = np.abs(np.fft.rfft(sound, 128))
    return np.log1p(magnitudes).astype("float32"), label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--start-method", choices=["fork", "spawn"], default="fork")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--history", default="history.json")
    args = parser.parse_args()

    multiprocessing.set_start_method(args.start_method)
    with multiprocessing.Pool(args.processes) as pool:
        examples = pool.map(spectrum, range(400), chunksize=50)
    x = np.stack([magnitudes for magnitudes, _ in examples])
    y = np.array([label for _, label in examples])
    print(f"{len(x)} spectra of {x.shape[1]} frequencies, sum {x.sum():.3f}, from {args.processes} processes")

    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras

    keras.utils.set_random_seed(15)
    model = keras.Sequential(
        [keras.Input((x.shape[1],)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    history = model.fit(x, y, validation_split=0.25, epochs=3, batch_size=20, verbose=2)
    with open(args.history, "w") as file:
        json.dump(history.history, file)


if __name__ == "__main__":
    main()
