from accel_engine.plan.model_size import LayerActivations, ModelSize, kept_bytes, largest_bytes

LAYERS = tuple(LayerActivations(kept, output) for kept, output in [(10, 4), (0, 6), (30, 5), (20, 7), (0, 8), (5, 50)])


def test_all_kept_activations_are_needed_at_the_same_time() -> None:
    assert kept_bytes(LAYERS, remat=False) == 65


def test_rematerialization_keeps_the_outputs_of_segments_and_the_largest_segment() -> None:
    # Six layers in segments of two: outputs 6, 7 and 50; the second segment keeps 30 + 20.
    assert kept_bytes(LAYERS, remat=True) == 6 + 7 + 50 + 50


def test_a_deep_model_needs_less_with_rematerialization() -> None:
    deep = (LayerActivations(100, 100),) * 100
    assert kept_bytes(deep, remat=True) == 10 * 100 + 10 * 100 < kept_bytes(deep, remat=False)


def test_no_layers_need_nothing() -> None:
    assert kept_bytes((), remat=False) == kept_bytes((), remat=True) == largest_bytes(()) == 0


def test_the_largest_activation_is_kept_or_an_output() -> None:
    assert largest_bytes(LAYERS) == 50
    assert largest_bytes(LAYERS[:4]) == 30


def test_a_model_without_operations_was_not_traced() -> None:
    assert not ModelSize(1, 1, LAYERS).is_traced
    assert ModelSize(1, 1, LAYERS, operations=9).is_traced
