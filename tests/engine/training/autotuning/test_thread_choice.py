import pytest

from accel_engine.training.autotuning.run_threads import ThreadChoice, ThreadSource, choose_threads


@pytest.mark.parametrize(
    ("rates", "count"),
    [
        ({}, 4),
        ({1: 200.0}, 4),
        ({4: 100.0}, 4),
        ({1: 200.0, 2: 300.0}, 4),  # how fast TensorFlow's own number is, nobody knows
        ({1: 110.0, 4: 100.0}, 1),
        ({1: 109.0, 4: 100.0}, 4),
        ({1: 50.0, 4: 100.0}, 4),
        ({1: 120.0, 2: 150.0, 4: 100.0, 8: 130.0}, 2),
    ],
)
def test_the_fastest_number_is_chosen_if_it_is_clearly_faster(rates: dict[int, float], count: int) -> None:
    choice = choose_threads(None, None, 4, rates)

    assert choice.count == count
    if count == 4:
        assert choice == ThreadChoice(4, 4, ThreadSource.TENSORFLOW)
        assert choice.setting is None
    else:
        assert choice == ThreadChoice(count, 4, ThreadSource.EARLIER_RUNS, rates[count], rates[4])
        assert choice.setting == count


def test_the_users_environment_is_preferred_to_earlier_runs_and_the_plan_to_both() -> None:
    rates = {1: 200.0, 4: 100.0}

    of_user, planned = choose_threads(None, 2, 4, rates), choose_threads(3, 2, 4, rates)

    assert of_user == ThreadChoice(2, 4, ThreadSource.ENVIRONMENT)
    assert of_user.setting is None, "TensorFlow reads the variable"
    assert planned == ThreadChoice(3, 4, ThreadSource.PLAN)
    assert planned.setting == 3
    assert choose_threads(4, 1, 4, {}).setting == 4, "not the environment's"
