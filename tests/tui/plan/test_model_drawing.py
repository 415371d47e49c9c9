"""A model as a drawing."""

from accel_engine.requests.describe_model import Description, ModelBlock
from accel_tui.plan.model_drawing import draw_model

CONV = ("Conv2D", "BatchNormalization", "ReLU")
CHAIN = Description(
    blocks=(
        ModelBlock(CONV, (8, 8, 16), 208),
        ModelBlock(CONV, (8, 8, 16), 9_000, 3),
        ModelBlock(("Dense",), (10,), 650),
    ),
    is_chain=True,
)


def drawn(description: Description, width: int = 40, room: int = 12, title: str = "") -> list[str]:
    lines = [line.plain.rstrip() for line in draw_model(description, width, room, title)]
    assert len(lines) <= room
    assert all(len(line) <= width for line in lines)
    return lines


def test_blocks_stand_in_a_frame_with_weights_shapes_and_how_often_they_repeat() -> None:
    lines = drawn(CHAIN, 60, title="28x28x1 each")
    assert lines[0] == "  28x28x1 each"
    assert lines[2].startswith("│ Conv2D · BatchNorm · ReLU") and lines[2].endswith("208 │ 8x8x16")  # noqa: PT018
    assert "×3  9.00k │" in lines[4]  # noqa: RUF001
    assert [line[0] for line in lines] == [" ", *"╭│├│├│╰"]


def test_with_less_room_there_are_no_rules_then_the_middle_is_counted_then_nothing_is_drawn() -> None:
    assert [line[0] for line in drawn(CHAIN, room=6)] == [*"╭│││╰"]
    many = Description(blocks=tuple(ModelBlock((f"Layer{number}",)) for number in range(20)), is_chain=True)
    lines = drawn(many, room=8)
    assert "⋮ 15 more blocks" in "\n".join(lines)
    assert "Layer0" in lines[1] and "Layer19" in lines[-2]  # noqa: PT018
    two = drawn(CHAIN, room=4, title="28x28x1 each")  # which has no room
    assert [line[0] for line in two] == [*"╭││╰"]
    assert "⋮ 2 more blocks" in two[2] or "⋮ 2 more blocks" in two[1]
    assert drawn(CHAIN, room=3) == []
    assert drawn(Description()) == []


def test_of_branches_and_unknown_connections_layers_are_counted() -> None:
    block = ModelBlock((*CONV, "Conv2D", "Add"), (8, 8, 16), 5, 2, has_branches=True)
    (line,) = drawn(Description(blocks=(block,), is_chain=True), 70)[1:-1]
    assert "2 Conv2D, BatchNorm, ReLU, Add" in line
    unknown = drawn(Description(blocks=(ModelBlock(("Dense",), (), 5, 4), ModelBlock(("Mine",)))), 40)
    assert [line[0] for line in unknown] == [*"╭││╰"]
