"""Writes the requests with which TensorFlow Serving warms a model up before it serves it.

``tensorflow-serving-api``, which has their messages, would install another TensorFlow, so they are encoded here.

Sources: ``_prediction_log.proto``, ``predict.proto`` and ``model.proto`` of TensorFlow Serving.
"""

from pathlib import Path

import tensorflow as tf

from accel_engine.inference.runtime import Arrays
from accel_engine.models.model_files import SIGNATURE
from accel_engine.protobuf import bytes_field, text_field

FILE = Path("assets.extra", "tf_serving_warmup_requests")
"""The file in a SavedModel's directory."""

_PREDICT_LOG = 6  # of PredictionLog
_REQUEST = 1  # of PredictLog
_MODEL_SPEC, _INPUTS = 1, 2  # of PredictRequest
_NAME, _SIGNATURE_NAME = 1, 3  # of ModelSpec
_KEY, _VALUE = 1, 2  # of an entry of a map


def write_warmup(directory: Path, name: str, requests: list[Arrays]) -> None:
    """Write requests beside a SavedModel.

    Args:
        directory: The directory of the SavedModel's version.
        name: The name under which it is served.
        requests: The inputs of each request.
    """
    path = directory / FILE
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for inputs in requests:
            writer.write(_prediction_log(name, inputs))


def _prediction_log(name: str, inputs: Arrays) -> bytes:
    """Encode a request as a ``PredictionLog``."""
    spec = text_field(_NAME, name) + text_field(_SIGNATURE_NAME, SIGNATURE)
    request = bytes_field(_MODEL_SPEC, spec)
    for key, array in inputs.items():
        tensor = tf.make_tensor_proto(tf.constant(array)).SerializeToString()
        request += bytes_field(_INPUTS, text_field(_KEY, key) + bytes_field(_VALUE, tensor))
    return bytes_field(_PREDICT_LOG, bytes_field(_REQUEST, request))
