"""The value range of examples, and the choice whether to scale them; without NumPy."""

from dataclasses import dataclass
from typing import Self

from accel_engine.errors import FieldValue, PlanError, Words

SCALES = ("auto", "none", "0-1")
"""Values of a plan's ``scale``."""

_MAX_VALUES = {"bool": 1, "uint8": 255, "uint16": 65535}
"""Largest value of each dtype whose whole range data typically uses."""


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether a shape is an image's: height, width and 1, 3 or 4 channels."""
    return len(shape) == 3 and shape[2] in (1, 3, 4) and min(shape[:2]) > 1


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The range of the values of examples."""

    dtype: str = "float32"
    """NumPy's name of their dtype."""
    largest: int | None = None
    """Largest value of the dtype: 255 for uint8, 65535 for uint16, 1 for bool; ``None`` for all others, whose range
    says nothing about the data."""
    pixels: bool = False
    """Whether they are pixels of images."""
    declared: bool = True
    """Whether the source declares ``pixels``; otherwise it is inferred from dtype and shape."""

    @classmethod
    def of_array(cls, dtype: str, example: tuple[int, ...]) -> Self:
        """Infer the range from an array's dtype and the shape of one example.

        Only uint8 and uint16 in the shape of images are treated as pixels.
        """
        pixels = dtype in ("uint8", "uint16") and is_image(example)
        return cls(dtype, _MAX_VALUES.get(dtype), pixels, declared=False)

    @property
    def noun(self) -> str:
        """``pixels`` or ``values``."""
        return "pixels" if self.pixels else "values"


PIXELS = ValueRange("uint8", 255, pixels=True)
"""Declared pixels of 8-bit images."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """The scaling of raw values before the model."""

    factor: float
    """Factor of the values."""
    text: str
    """Summary, such as ``pixels scaled by 1/255``."""
    note: Words = ()
    """A note for the user."""


def choose_scaling(scale: str, values: ValueRange, preprocessing: str = "", *, takes_bytes: bool = False) -> Scaling:
    """Decide whether to scale the values of examples.

    Args:
        scale: A plan's ``scale``: ``auto`` scales pixels to [0, 1] unless the model starts with its own
            preprocessing, ``0-1`` divides integers by the largest value of their dtype, ``none`` scales nothing.
        values: Their range.
        preprocessing: The model's preprocessing layer; empty if there is no such layer.
        takes_bytes: Whether this layer takes pixels from 0 to 255; ``auto`` scales pixels of 16 bits to these.

    Raises:
        PlanError: ``0-1`` is not possible for the dtype.
    """
    if scale == "0-1" and values.largest is None:
        raise PlanError(
            "scale",
            scale,
            f"divides uint8 by 255 and uint16 by 65535, but the examples are {values.dtype}; "
            "use auto or none, and scale them in the file or the model",
        )
    if scale == "none" or (scale == "auto" and not values.pixels) or values.largest is None:
        return scaling_by(1.0, values.noun)
    if scale == "auto" and takes_bytes and values.largest > _MAX_VALUES["uint8"]:
        return scaling_by(_MAX_VALUES["uint8"] / values.largest, values.noun)
    if scale == "auto" and preprocessing:
        return Scaling(1.0, f"pixels not scaled: the model has the layer {preprocessing}")
    chosen = scaling_by(1 / values.largest, values.noun)
    if scale == "auto" and not values.declared:
        looks = f"{values.dtype} examples look like images: {chosen.text} (turn this off with "
        note: Words = (looks, FieldValue("scale", "none"), ")")
    elif preprocessing:
        note = (f"{chosen.text}, as set in the plan, although the model has the layer {preprocessing}",)
    else:
        note = ()
    return Scaling(chosen.factor, chosen.text, note)


def scaling_by(factor: float, noun: str) -> Scaling:
    """Make a :class:`Scaling` by ``factor``."""
    return Scaling(factor, f"{noun} not scaled" if factor == 1 else f"{noun} scaled by 1/{round(1 / factor)}")
