"""Reads a directory that TensorFlow Datasets prepared."""

from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.prepared.tensorflow_datasets_survey import read_layout
from accel_engine.data.prepared.tfrecord import read_records


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read the records of a prepared directory.

    Args:
        entry: Has the path of the directory of a version, with ``dataset_info.json`` and ``features.json``.
        options: Which features are inputs and targets, the size of images, how examples are split, and whether invalid
            ones are skipped.
        progress: Reports the number of examples read.

    Raises:
        DataError: A file is damaged, or the features cannot be read.
        PlanError: An option does not fit.
    """
    return read_records(entry, read_layout(entry, options), options, progress)
