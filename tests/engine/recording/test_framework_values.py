"""Values of the frameworks themselves, where they are installed."""

import math
import threading
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from accel_engine import Recorder
from accel_engine.events import Warned
from accel_engine.recording.run_link import RunLink
from accel_engine.run import RunReader

from .conftest import Read


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The recorder thread takes nothing until this is set."""
    goes_on, commands = threading.Event(), RunLink.commands
    monkeypatch.setattr(RunLink, "commands", lambda self: (goes_on.wait(), commands(self))[1])
    return goes_on


def values_of(run: Recorder) -> dict[str, list[float]]:
    read = Read(run.directory)
    return {name: read.series(name).tolist() for name in read.names}


def warned(run: Recorder) -> list[str]:
    return [event.message for event in Read(run.directory).all(Warned)]


def test_values_of_tensorflow_and_keras() -> None:
    import keras
    import tensorflow as tf

    variable, of_keras = tf.Variable(1.0), keras.Variable(2.0)
    optimizer = keras.optimizers.SGD(0.5)
    with Recorder() as run:
        for _ in range(2):
            run.log(
                optimizer.iterations,
                loss=tf.constant(3.0),
                half=tf.constant(0.5, tf.bfloat16),
                vector=tf.range(2),
                variable=variable,
                of_keras=of_keras,
                rate=optimizer.learning_rate,
            )
            variable.assign_add(1.0)
            of_keras.assign(9.0)
            optimizer.iterations.assign_add(1)
        run.log_image(1, image=tf.zeros((4, 4)))
        run.log_histogram(1, histogram=variable)

    assert values_of(run) == {
        "loss": [3.0, 3.0],
        "half": [0.5, 0.5],
        "vector_0": [0.0, 0.0],
        "vector_1": [1.0, 1.0],
        "variable": [1.0, 2.0],
        "of_keras": [2.0, 9.0],
        "rate": [0.5, 0.5],
    }
    assert not warned(run)


def test_a_symbolic_tensor_has_no_value() -> None:
    import tensorflow as tf

    with Recorder() as run:
        run.log(0, loss=1.0)

        @tf.function  # type: ignore[untyped-decorator]
        def traced(x: Any) -> Any:
            run.log(1, symbolic=x)
            return x

        traced(tf.constant(1.0))

    (message,) = warned(run)
    assert message.startswith("symbolic is not recorded: ")
    assert values_of(run) == {"loss": [1.0]}


def test_values_of_jax() -> None:
    jax = pytest.importorskip("jax")

    with Recorder() as run:
        deleted = jax.numpy.ones(())
        run.log(jax.numpy.array(0), loss=jax.numpy.float32(3.0), half=jax.numpy.ones((), "bfloat16"))
        run.log(1, gone=deleted)
        deleted.delete()
        jax.jit(lambda x: (run.log(2, traced=x), x)[1])(1.0)
        run.log_histogram(0, histogram=jax.numpy.ones(5))

    assert values_of(run) == {"loss": [3.0], "half": [1.0]}
    assert [message.partition(" ")[0] for message in warned(run)] == ["gone", "traced"]


def test_values_of_pytorch(waiting: threading.Event) -> None:
    torch = pytest.importorskip("torch")

    weights = torch.ones(3, requires_grad=True)
    with Recorder() as run:
        loss = (weights**2).sum()
        changed = torch.ones(())
        run.log(torch.tensor(0), loss=loss, half=loss.bfloat16(), vector=torch.arange(2), changed=changed)
        changed.add_(1.0)
        with torch.inference_mode():
            uncounted = torch.ones(())
            run.log(1, uncounted=uncounted)
            uncounted.add_(1.0)
        run.log_image(1, image=torch.zeros(4, 4, 3).byte())
        run.log_histogram(1, histogram=torch.randn(100).bfloat16())
        waiting.set()

    np.testing.assert_equal(
        values_of(run),
        {
            "loss": [3.0, math.nan],
            "half": [3.0, math.nan],
            "vector_0": [0.0, math.nan],
            "vector_1": [1.0, math.nan],
            "uncounted": [math.nan, 1.0],
        },
    )
    (message,) = warned(run)
    assert message == (
        "changed is not recorded: the tensor was changed in place after it was logged: "
        "log changed.detach().clone() or changed.item() instead"
    )


def test_parameters_of_pytorch_are_recorded_as_they_were_before_the_update(waiting: threading.Event) -> None:
    torch = pytest.importorskip("torch")

    weight = torch.nn.Parameter(torch.zeros(2))
    picture = torch.zeros(4, 4)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    with Recorder() as run:
        for step in range(3):
            run.log(torch.tensor(float(step)), weight=weight)
            run.log_histogram(step, weight=weight)
            run.log_image(step, picture=picture, planes=torch.zeros(3, 16, 16))
            weight.sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            picture.fill_(9.0)
            picture = torch.ones(4, 4)
        waiting.set()

    assert values_of(run) == {"weight_0": [0.0, -1.0, -2.0], "weight_1": [0.0, -1.0, -2.0]}
    (message,) = warned(run)
    assert message.startswith("planes is not recorded: ")
    assert "image.permute(1, 2, 0)" in message
    assert run.directory
    with closing(RunReader(run.directory)) as reader:
        assert {series.name: series.count for series in reader.media_list()} == {"weight": 3, "picture": 3}
