"""Each use of a private name works without it, as in a version that has none."""

import inspect
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.random import seed_generator
from tensorflow.python.client import device_lib
from tensorflow.python.eager import context
from tensorflow.python.ops import script_ops

from accel_engine.errors import AccelError
from accel_engine.private_names import keras_graph_names, keras_names, python_names, tensorflow_names, tflite_flatbuffer
from accel_engine.training.core.rematerialization.division import divide_model


def test_frames_and_exceptions_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    thread = threading.get_ident()
    error = ValueError("oh no")
    try:
        raise error
    except ValueError:
        assert python_names.current_exception(thread) is error
        monkeypatch.setattr(sys, "_current_exceptions", lambda: {thread: (ValueError, error, None)})  # Python 3.11
        assert python_names.current_exception(thread) is error
        monkeypatch.delattr(sys, "_current_exceptions")
        assert python_names.current_exception(thread) is None
    frame, found = inspect.currentframe(), python_names.current_frame(thread)
    assert frame
    assert found
    assert found.f_back is frame
    monkeypatch.delattr(sys, "_current_frames")
    assert python_names.current_frame(thread) is None


def test_layers_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="inside")])
    model = keras.Sequential([keras.Input((2,)), inner, keras.layers.Dense(1, name="last")])
    wanted = {model.name, inner.name, "inside", "last"}
    assert wanted <= {layer.name for layer in keras_names.all_layers(model)}

    monkeypatch.delattr(keras.layers.Layer, "_flatten_layers")

    assert {layer.name for layer in keras_names.all_layers(model)} == wanted


def test_a_saved_model_keeps_the_arguments_of_its_losses(tmp_path: Path) -> None:
    x, y = np.full((4, 3), 3.0, "float32"), np.arange(8.0, dtype="float32").reshape(4, 2) * 10
    for loss in (keras.losses.Huber(delta=5.0), keras.losses.CosineSimilarity(axis=0)):
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        model.compile("sgd", loss, metrics=[keras.metrics.CosineSimilarity(axis=0)])
        before = model.evaluate(x, y, verbose=0)

        with keras_names.whole_configs(model):
            model.save(tmp_path / "model.keras")

        again = keras.models.load_model(tmp_path / "model.keras")
        assert again.evaluate(x, y, verbose=0) == pytest.approx(before)
    del model._compile_config
    with keras_names.whole_configs(model):
        model.save(tmp_path / "other.keras")


def test_schedules_and_iterations_of_an_optimizer() -> None:
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 10)
    optimizer = keras.optimizers.SGD(schedule, gradient_accumulation_steps=2)
    assert keras_names.schedule_of(optimizer) is schedule
    assert keras_names.schedule_of(keras.optimizers.SGD(0.1)) is None
    assert keras_names.iterations_of(optimizer) is optimizer._iterations

    public = SimpleNamespace(iterations=3)

    assert keras_names.schedule_of(public) is None
    assert keras_names.iterations_of(public) == 3


def test_variables_that_an_optimizer_keeps_for_a_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = keras.Variable(np.ones(2))
    adam, plain = keras.optimizers.Adam(name="adam"), keras.optimizers.SGD()
    for optimizer in (adam, plain):
        optimizer.build([weight])
    found = keras_names.slots_of(adam, weight)
    assert found is not None
    assert {name: each.path for name, each in found.items()} == {
        "momentum": "adam/variable_momentum",
        "velocity": "adam/variable_velocity",
    }
    assert keras_names.slots_of(plain, weight) == {}

    (base,) = [each for each in type(adam).__mro__ if "_get_variable_index" in vars(each)]
    monkeypatch.delattr(base, "_get_variable_index")

    assert keras_names.slots_of(adam, weight) is None


def test_losses_of_logits() -> None:
    assert keras_names.loss_takes_logits(keras.losses.BinaryCrossentropy(from_logits=True))
    assert keras_names.loss_takes_logits(SimpleNamespace(_fn_kwargs={"from_logits": True}))
    assert not keras_names.loss_takes_logits(SimpleNamespace())


def test_state_of_random_layers_without_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(keras_names.unseeded_state()) == 1

    monkeypatch.delattr(seed_generator, "global_seed_generator")

    assert keras_names.unseeded_state() == ()
    assert keras_names.unseeded_generator() is None


def test_a_thread_uses_the_random_generator_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    own, seen = keras_names.unseeded_generator(), []

    def read_generator(generator: Any) -> None:
        keras_names.use_unseeded_generator(generator)
        seen.append(keras_names.unseeded_generator())

    def in_thread() -> Any:
        thread = threading.Thread(target=read_generator, args=(own,))
        thread.start()
        thread.join()
        return seen[-1]

    assert in_thread() is own

    with monkeypatch.context() as without:
        without.delattr(seed_generator, "GLOBAL_SEED_GENERATOR")
        keras_names.use_unseeded_generator(None)

    assert keras_names.unseeded_generator() is own


def test_draws_are_replaced_within_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    def replaced() -> bool:
        with keras_names.replaced_draws(lambda *_: lambda *_, **__: tf.fill([1], 7.0), ("uniform", "missing")):
            return float(keras.random.uniform([1])[0]) == 7.0

    assert replaced()
    assert 0 <= float(keras.random.uniform([1])[0]) < 1

    monkeypatch.setitem(sys.modules, "keras.src.backend.tensorflow", None)

    assert not replaced()


def test_local_devices_are_those_that_the_process_is_configured_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow creates all GPUs of the machine without the configuration, and fails if another one is in use."""

    def list_devices(session_config: Any = None) -> list[Any]:
        if session_config is None:
            raise ValueError("TensorFlow device (GPU:0) is being mapped to multiple devices (1 now, and 0 previously)")
        shown = session_config.gpu_options.visible_device_list
        return [SimpleNamespace(name="/device:GPU:0", physical_device_desc=f"device: {shown}", memory_limit=7)]

    config = tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions(visible_device_list="1"))
    monkeypatch.setattr(context, "context", lambda: SimpleNamespace(config=config))
    monkeypatch.setattr(device_lib, "list_local_devices", list_devices)

    assert tensorflow_names.local_devices() == {"GPU:0": tensorflow_names.LocalDevice("device: 1", 7)}

    monkeypatch.setattr(context, "context", lambda: SimpleNamespace())  # nothing tells the configuration
    assert tensorflow_names.local_devices() == {}


def test_local_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tensorflow_names.local_devices()["CPU:0"].memory > 0

    monkeypatch.delattr(sys.modules["tensorflow.python.client"], "device_lib")
    monkeypatch.setitem(sys.modules, device_lib.__name__, None)

    assert tensorflow_names.local_devices() == {}


def test_context_of_eager_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    tf.config.list_logical_devices()
    assert not tensorflow_names.devices_are_configurable()
    assert tensorflow_names.server_config() is not None
    monkeypatch.setattr(context, "context", lambda: SimpleNamespace(_initialized=False))
    assert tensorflow_names.devices_are_configurable()
    assert tensorflow_names.server_config() is None

    monkeypatch.delattr(sys.modules["tensorflow.python.eager"], "context")
    monkeypatch.setitem(sys.modules, context.__name__, None)

    assert not tensorflow_names.devices_are_configurable()
    assert tensorflow_names.server_config() is None


def test_graphs_of_functions() -> None:
    inner = tf.function(lambda x: x + 1)
    graph = tf.function(lambda x: inner(x)).get_concrete_function(tf.TensorSpec((3,))).graph
    (called,) = (each for each in graph.get_operations() if "PartitionedCall" in each.type)
    name = called.get_attr("f").name
    assert tensorflow_names.function_graph(graph, name).outputs[0].shape == (3,)
    assert tensorflow_names.function_graph(graph, "another") is None
    assert tensorflow_names.function_graph(SimpleNamespace(), name) is None


def test_steps_outside_workers() -> None:
    strategy = SimpleNamespace(extended=SimpleNamespace(_allow_run_without_coordinator=False))
    tensorflow_names.allow_steps_outside_workers(strategy)
    assert strategy.extended._allow_run_without_coordinator
    unknown = SimpleNamespace(extended=SimpleNamespace())

    tensorflow_names.allow_steps_outside_workers(unknown)

    assert not vars(unknown.extended)


def test_functions_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(x: float) -> float:
        return 2 * x

    tensorflow_names.register_function("accel_tui_test", double)
    assert tf.raw_ops.PyFunc(input=[tf.constant(3.0)], token="accel_tui_test", Tout=[tf.float32])[0] == 6
    monkeypatch.delattr(script_ops, "_py_funcs")

    with pytest.raises(AccelError, match="use another strategy"):
        tensorflow_names.register_function("accel_tui_test", double)


class Calling(keras.layers.Layer):
    """Notes what a function returns within its call."""

    def __init__(self, function: Callable[[], Any], **options: Any) -> None:
        super().__init__(**options)
        self._function = function
        self.found: Any = None

    def call(self, x: Any) -> Any:
        self.found = self._function()
        return x


def test_masks_of_tensors() -> None:
    tensor, mask = tf.constant([[[1.0], [3.0]]]), tf.constant([[True, False]])
    assert keras_names.mask_of(tensor) is None
    assert keras.layers.GlobalAveragePooling1D()(tensor) == 2

    keras_names.set_mask(tensor, mask)

    assert keras_names.mask_of(tensor) is mask
    assert keras.layers.GlobalAveragePooling1D()(tensor) == 1


def test_weights_in_a_mixed_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    third = keras.Variable(tf.constant([1 / 3]), dtype="float32", autocast=True)

    def without() -> Any:
        with monkeypatch.context() as changed:
            changed.delattr(sys.modules["keras.src.backend"], "AutocastScope")
            return keras_names.unautocast_value(third)

    found = Calling(lambda: (keras_names.unautocast_value(third), without()), dtype="mixed_bfloat16")
    found(tf.ones([1]))

    exact, rounded = found.found
    assert (exact.dtype, rounded.dtype) == ("float32", "bfloat16")
    assert exact == third.value == without()


def test_training_of_the_layers_that_call(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Calling(lambda: keras_names.call_context_training(layer))
    model = keras.Sequential([keras.Input((2,)), layer])
    for training in (True, False):
        model(tf.ones([1, 2]), training=training)
        assert layer.found is training

    assert keras_names.call_context_training(SimpleNamespace()) is True


@pytest.mark.parametrize("name", ["keras.src.models.functional", "_nodes_by_depth", "_standardize_inputs"])
def test_graphs_of_layers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    sequential = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)])
    model = keras.Model(inputs := keras.Input((2,)), sequential(inputs))
    assert keras_graph_names.graph_of_layers(model) is model
    assert len(keras_graph_names.graph_nodes(keras_graph_names.graph_of_layers(sequential))) == 2
    assert keras_graph_names.graph_of_layers(keras.layers.Dense(1)) is None

    functional = type(keras_graph_names.graph_of_layers(sequential))
    if name == "_standardize_inputs":
        monkeypatch.delattr(functional, name)
    elif name == "_nodes_by_depth":
        for each in (model, keras_graph_names.graph_of_layers(sequential)):
            monkeypatch.delattr(each, name)
    else:
        monkeypatch.setitem(sys.modules, name, None)

    assert keras_graph_names.graph_of_layers(model) is keras_graph_names.graph_of_layers(sequential) is None
    assert divide_model(sequential).count == 0, "its layers have none inside"


def test_layers_that_a_layer_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    model = keras.Sequential([keras.Input((2,)), inner, keras.layers.Dense(1)])
    assert [layer for layer in keras_names.sublayers(model) if layer in model.layers] == model.layers
    assert inner.layers[0] not in keras_names.sublayers(model)

    monkeypatch.delattr(keras.layers.Layer, "_flatten_layers")

    assert keras_names.sublayers(model) == model.layers
    assert keras_names.sublayers(keras.layers.Dense(1)) == []


def test_layers_of_losses() -> None:
    layers = [keras.layers.ActivityRegularization(l2=1.0) for _ in range(2)]
    with keras.StatelessScope(collect_losses=True) as scope:
        for layer in layers:
            layer(tf.ones([1, 2]))

    for layer, loss in zip(layers, scope.losses, strict=True):
        assert keras_names.layer_of_loss(layers, loss) is layer
        vars(layer).pop("_loss_ids")
    assert keras_names.layer_of_loss(layers, scope.losses[1]) is layers[0]


def test_operations_added_to_a_tflite_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tflite_flatbuffer.can_edit_flatbuffer()
    monkeypatch.setitem(sys.modules, "tensorflow.lite.tools.flatbuffer_utils", None)
    assert not tflite_flatbuffer.can_edit_flatbuffer()
