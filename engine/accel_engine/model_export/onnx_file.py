"""Converts a model to ONNX."""

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np

from accel_engine.errors import ModelError
from accel_engine.private_names.keras_names import all_layers
from accel_engine.user_code import reason


def write_onnx(model: keras.Model, path: Path, metadata: dict[str, str]) -> None:
    """Write an ``.onnx`` file.

    Args:
        model: From a dictionary of numbers to a dictionary of outputs.
        path: The file.
        metadata: Texts that it keeps.

    Raises:
        ModelError: A library is missing, or ONNX lacks an operation of the model.
    """
    if missing := [name for name in ("onnx", "tf2onnx") if importlib.util.find_spec(name) is None]:
        raise ModelError(f"{' and '.join(missing)} missing: pip install 'accel-tui[onnx]'")
    import onnx

    inputs = model.input
    for layer in all_layers(model):
        if isinstance(layer, keras.layers.Normalization) and layer.built:
            # tf2onnx takes tensors that a graph captures for inputs; arrays become constants of the graph.
            layer.mean, layer.variance = np.asarray(layer.mean), np.asarray(layer.variance)
    try:
        model(
            {name: np.zeros((1, *(side or 1 for side in each.shape[1:])), each.dtype) for name, each in inputs.items()}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Keras looks up names that NumPy has renamed
            model.export(path, format="onnx", verbose=False)
    except Exception as error:  # of several kinds
        raise ModelError(f"the model cannot be converted to ONNX: {reason(error)}") from error
    converted = onnx.load(path)
    _replace_erfc(converted.graph, onnx.helper)
    onnx.helper.set_model_props(converted, metadata)
    onnx.save(converted, path)


def _replace_erfc(graph: Any, helper: Any) -> None:
    """Write ``1 - Erf(x)`` for ``Erfc(x)`` of exact GELUs, which tf2onnx keeps although ONNX does not have it."""
    nodes = []
    for node in graph.node:
        if node.op_type != "Erfc":
            nodes.append(node)
            continue
        erf, one = f"{node.name}/Erf", f"{node.name}/one"
        nodes += [
            helper.make_node("Constant", [], [one], f"{one}/node", value_float=1.0),
            helper.make_node("Erf", list(node.input), [erf], erf),
            helper.make_node("Sub", [one, erf], list(node.output), f"{node.name}/Sub"),
        ]
    del graph.node[:]
    graph.node.extend(nodes)
