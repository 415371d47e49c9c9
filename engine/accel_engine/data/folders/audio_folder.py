"""Reads WAV files from a folder per class, decoded by TensorFlow."""

from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf

from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.folders.audio_folder_scan import scan_audio_folder, wrong_rate
from accel_engine.data.folders.class_dataset import read_classes
from accel_engine.data.folders.wav_header import read_wav_header
from accel_engine.errors import DataError, UnreadableError


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read a folder of WAV files with 16-bit PCM: float32 ``[n, samples, 1]`` from -1 to 1.

    This is the shape of ``keras.utils.audio_dataset_from_directory``, whose channels are mixed into one here.

    Args:
        entry: Has the folder's path.
        options: The number of samples, as ``window``, how validation files are chosen, and whether invalid files are
            skipped.
        progress: Reports the number of files read.

    Raises:
        DataError: The folder does not have a folder of WAV files per class, or a file cannot be read.
    """
    folder, samples, rate = scan_audio_folder(entry, options)
    return read_classes(
        entry,
        folder,
        options,
        progress,
        decode=partial(sound_tensor, samples=samples, rate=rate),
        shape=(samples, 1),
        dtype=np.float32,
        explain=partial(_explain, rate=rate),
        check=read_wav_header,
        sample_rate=rate,
    )


def sound_tensor(path: tf.Tensor, samples: int, rate: int) -> tf.Tensor:
    """Decode a file in a graph, float32 ``[samples, 1]``."""
    sound, found = tf.audio.decode_wav(tf.io.read_file(path), desired_samples=samples)
    with tf.control_dependencies([tf.debugging.assert_equal(found, rate)]):
        return tf.ensure_shape(tf.reduce_mean(sound, axis=1, keepdims=True), (samples, 1))


def _explain(path: str, rate: int) -> None:
    """Raise the reason why a file cannot be decoded."""
    header = read_wav_header(Path(path))
    if header.rate != rate:
        raise DataError(wrong_rate(path, header.rate, rate))
    raise UnreadableError(f"cannot decode the sound {path}")
