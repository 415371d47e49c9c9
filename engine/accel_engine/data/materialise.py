"""Loads splits into memory whose arrays are made when they are read."""

import numpy as np

from accel_engine.data.dataset import Split, fits_in_memory

LARGEST = 1 << 28
"""Bytes up to which all examples are made at once, so that devices can keep them. Windows take more memory than
the data that they are made of."""


def materialise(splits: list[Split]) -> list[Split]:
    """Make all examples of some splits if they are small, and return the splits unchanged otherwise."""
    total = sum(split.nbytes for split in splits)
    if total > LARGEST or not fits_in_memory(total):
        return splits
    return [Split(*split.take(np.arange(len(split)))) for split in splits]
