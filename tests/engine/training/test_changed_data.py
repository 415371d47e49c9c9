"""Continuing a run whose data has changed: what is learned from it would be another."""

from pathlib import Path

import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.events import Outcome, Warned
from accel_engine.plan import Plan
from accel_engine.requests.revalidate import RevalidationRequest
from accel_engine.trained.diagnose import revalidate

from .conftest import Gym


def write(path: Path, colours: str, shift: float = 0.0) -> None:
    values = np.random.default_rng(0).normal(size=60) + shift
    rows = [
        f"{value},{colours[index % len(colours)]},{'yes' if value > shift else 'no'}"
        for index, value in enumerate(values)
    ]
    path.write_text("\n".join(["size,colour,label", *rows]))


def test_other_examples_are_a_warning_and_other_columns_an_error(gym: Gym, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write(path, "rrgb")
    plan = Plan(model="mlp", data=str(path), epochs=1, batch_size=16)
    directory = gym.train(plan).directory
    revalidate(RevalidationRequest(directory))
    again = gym.train(plan.replace(epochs=2), run=directory)
    assert not any("changed" in warned.message for warned in again.all(Warned))

    write(path, "rrgb", shift=1.0)

    with pytest.raises(RunError, match="with other training examples: restore it"):
        revalidate(RevalidationRequest(directory))
    for epochs in (3, 4):  # until it is restored
        more = gym.train(plan.replace(epochs=epochs), run=directory)
        assert more.ended.outcome is Outcome.FINISHED, more.ended.reason
        assert sum("the training examples have changed since" in warned.message for warned in more.all(Warned)) == (
            epochs - 2
        )

    write(path, "ggrb")  # now g is the most frequent colour, and the first column of the three

    refused = gym.train(plan.replace(epochs=5), run=directory)
    assert refused.ended.outcome is Outcome.FAILED
    assert "with other columns, which the weights do not fit: restore it, or start a new run" in refused.ended.reason
    started = gym.train(plan.replace(initial_weights=str(directory)))
    note = f"run {directory.name} was trained on data with other columns: its weights may have another meaning here"
    assert note in [warned.message for warned in started.all(Warned)]


def test_data_that_a_function_makes_at_random_is_a_warning(gym: Gym, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        "import numpy as np\n\n"
        "def data():\n"
        "    x = np.random.default_rng().normal(size=(60, 4)).astype('float32')\n"
        "    return {'train': (x, x.argmax(1)), 'validation': (x, x.argmax(1)), 'class_names': list('abcd')}\n"
    )
    plan = Plan(model="mlp", data=f"{path}:data", epochs=1, batch_size=16)
    directory = gym.train(plan).directory
    note = (
        f"the training examples have changed since the run was started; if {path}:data makes them at random, "
        "give its random generator a seed"
    )

    assert revalidate(RevalidationRequest(directory)).notes == (note,)
    again = gym.train(plan.replace(epochs=2), run=directory)

    assert again.ended.outcome is Outcome.FINISHED, again.ended.reason
    assert note in [warned.message for warned in again.all(Warned)]
