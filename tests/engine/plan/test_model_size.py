from accel_engine.plan.model_size import ModelSize


def test_a_model_without_operations_was_not_traced() -> None:
    assert not ModelSize(1, 1, saved=9).is_traced
    assert ModelSize(1, 1, saved=9, operations=9).is_traced
