"""Releases the memory of a failed training, so that another one can be assembled in the same process."""

import gc

import keras


def release_models() -> None:
    """Release all models, graphs and kernels that nobody refers to any more, and let Keras name layers anew.

    Frames of an exception's traceback refer to a model until nobody handles the exception.
    """
    keras.backend.clear_session(free_memory=False)
    gc.collect()  # models and their graphs refer to each other
