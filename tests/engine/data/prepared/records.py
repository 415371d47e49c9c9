"""Writes TFRecord files."""

from pathlib import Path
from typing import Any

import tensorflow as tf


def feature(value: Any) -> tf.train.Feature:
    values = value if isinstance(value, list) else [value]
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def write(path: Path, examples: list[dict[str, Any]], compression: str = "") -> Path:
    """Write examples of bytes, floats and integers, or lists of these."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path), compression) as file:
        for example in examples:
            features = tf.train.Features(feature={name: feature(value) for name, value in example.items()})
            file.write(tf.train.Example(features=features).SerializeToString())
    return path
