import pytest

from accel_engine.data.pixel_scaling import PIXELS, ValueRange, choose_scaling, is_image
from accel_engine.errors import PlanError, join_words

GUESSED = ValueRange.of_array("uint8", (6, 5, 3))
SIXTEEN = ValueRange.of_array("uint16", (6, 5, 1))
TOKENS = ValueRange.of_array("uint8", (8,))
BOOLEANS = ValueRange.of_array("bool", (6, 5, 1))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((6, 5, 1), True),
        ((6, 5, 3), True),
        ((6, 5, 4), True),
        ((6, 5, 2), False),
        ((6, 5), False),
        ((1, 5, 3), False),
        ((3, 32, 32), False),
        ((8,), False),
        ((), False),
    ],
)
def test_what_can_be_an_image(shape: tuple[int, ...], expected: bool) -> None:
    assert is_image(shape) is expected


@pytest.mark.parametrize(
    ("scale", "numbers", "factor", "words", "note"),
    [
        ("auto", PIXELS, 1 / 255, "pixels scaled by 1/255", ""),
        ("auto", GUESSED, 1 / 255, "pixels scaled by 1/255", "(turn this off with --scale none)"),
        ("auto", SIXTEEN, 1 / 65535, "pixels scaled by 1/65535", "uint16 examples look like images"),
        ("auto", TOKENS, 1.0, "values not scaled", ""),
        ("auto", BOOLEANS, 1.0, "values not scaled", ""),
        ("auto", ValueRange("float32"), 1.0, "values not scaled", ""),
        ("none", PIXELS, 1.0, "pixels not scaled", ""),
        ("none", GUESSED, 1.0, "pixels not scaled", ""),
        ("none", ValueRange("int64"), 1.0, "values not scaled", ""),
        ("0-1", GUESSED, 1 / 255, "pixels scaled by 1/255", ""),
        ("0-1", TOKENS, 1 / 255, "values scaled by 1/255", ""),
        ("0-1", ValueRange.of_array("uint16", (8,)), 1 / 65535, "values scaled by 1/65535", ""),
        ("0-1", BOOLEANS, 1.0, "values not scaled", ""),
    ],
)
def test_what_is_scaled_is_said(scale: str, numbers: ValueRange, factor: float, words: str, note: str) -> None:
    chosen = choose_scaling(scale, numbers)
    assert (chosen.factor, chosen.text) == (factor, words)
    assert note in join_words(chosen.note)
    assert bool(note) == bool(join_words(chosen.note))


def test_a_model_that_takes_raw_pixels_gets_them_unless_the_plan_says_otherwise() -> None:
    chosen = choose_scaling("auto", GUESSED, "Rescaling")
    assert (chosen.factor, chosen.text) == (1.0, "pixels not scaled: the model has the layer Rescaling")
    assert chosen.note == ()
    assert choose_scaling("auto", TOKENS, "Embedding").text == "values not scaled"
    assert choose_scaling("none", PIXELS, "Rescaling").text == "pixels not scaled"
    assert choose_scaling("auto", PIXELS, "Rescaling", takes_bytes=True).factor == 1.0
    deep = choose_scaling("auto", SIXTEEN, "Rescaling", takes_bytes=True)  # ImageNet's models take 0 to 255
    assert (deep.factor, deep.text) == (1 / 257, "pixels scaled by 1/257")
    twice = choose_scaling("0-1", PIXELS, "Rescaling")
    assert twice.factor == 1 / 255
    words = "pixels scaled by 1/255, as set in the plan, although the model has the layer Rescaling"
    assert join_words(twice.note) == words


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8"])
def test_numbers_without_a_range_cannot_be_brought_to_one(dtype: str) -> None:
    with pytest.raises(PlanError, match=f"the examples are {dtype}; use auto or none") as caught:
        choose_scaling("0-1", ValueRange.of_array(dtype, (6, 5, 3)))
    assert caught.value.field == "scale"
