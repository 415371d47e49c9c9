"""Which changes of a plan a command makes in a live run."""

import pytest

from accel_engine.plan import SPECS, Plan
from accel_engine.plan.changed_plan import BY_COMMAND, command_argument, command_problem
from accel_engine.run.engine.commands import COMMANDS


@pytest.mark.parametrize(
    ("field", "value", "argument"),
    [
        ("learning_rate", 0.01, 0.01),
        ("learning_rate", None, None),
        ("validation_every", "500 steps", 500.0),
        ("validation_every", "2 epochs", 46.0),
        ("checkpoint_every", "10 minutes", None),
        ("checkpoint_every", "auto", None),
        ("xla", "on", None),
    ],
)
def test_commands_take_numbers(field: str, value: object, argument: float | None) -> None:
    assert command_argument(field, value, 23) == argument


def test_epochs_of_unknown_length_are_no_steps() -> None:
    assert command_argument("validation_every", "2 epochs", 0) is None


@pytest.mark.parametrize(
    ("plan", "field", "words"),
    [
        (Plan(model="mlp", schedule="cosine"), "learning_rate", "follows the schedule cosine"),
        (Plan(model="mlp", schedule="constant", warmup=10), "learning_rate", "the schedule constant with warmup"),
        (Plan(model="mlp", validation="end"), "validation_every", "needs --validation epoch"),
        (Plan(model="mlp", validation="end"), "checkpoint_every", ""),
        (Plan(model="mlp", schedule="constant"), "learning_rate", ""),
    ],
)
def test_a_command_that_has_no_effect_is_explained(plan: Plan, field: str, words: str) -> None:
    problem = command_problem(plan, {field})
    assert words in problem
    assert bool(words) is bool(problem)


def test_an_engine_knows_the_commands_that_change_fields() -> None:
    assert set(BY_COMMAND) == COMMANDS.keys() & SPECS.keys()
