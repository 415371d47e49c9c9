"""A model's layers as older programs wrote them."""

from accel_engine.run.diagnostics.model_items import LayerTable


def test_a_layer_is_none_of_another_model_and_no_operation_is_left_over() -> None:
    layer = {"name": "a", "kind": "Dense", "depth": 0, "shape": None, "parameters": 1, "trainable": 1, "flops": None}
    table = LayerTable.unpacked({"layers": [layer]})
    assert (table.rest, table.layers[0].inner) == (0.0, False)
