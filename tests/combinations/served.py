"""The formats in which each kind of data is served, for tests and benchmarks; without TensorFlow."""

SERVED = {
    "images": "onnx tflite savedmodel",
    "image_folder": "onnx",
    "masks": "onnx savedmodel",
    "labels": "tflite",
    "numbers": "onnx",
    "table": "onnx tflite savedmodel",
    "series": "onnx tflite savedmodel",
    "sequences": "tflite",
    "sounds": "onnx savedmodel",
    "reviews": "onnx tflite savedmodel",
    "story": "onnx savedmodel",
    "outputs": "onnx savedmodel",
}
"""The formats of each kind of data; see ``materials.py``."""

MODEL_PATHS = {"onnx": "model.onnx", "tflite": "model.tflite", "savedmodel": "model"}
"""The file, or the folder, of a model in each format."""
