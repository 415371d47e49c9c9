"""What the numbers of examples are, and whether they are scaled before the model takes them; without NumPy."""

from dataclasses import dataclass
from typing import Self

from accel_engine.errors import PlanError

SCALES = ("auto", "none", "0-1")
"""What a plan's ``scale`` may be."""

_LARGEST = {"bool": 1, "uint8": 255, "uint16": 65535}
"""The largest number of each type whose range says what its numbers may be."""


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether an example of this shape can be an image: height, width and 1, 3 or 4 channels."""
    return len(shape) == 3 and shape[2] in (1, 3, 4) and min(shape[:2]) > 1


@dataclass(frozen=True, slots=True)
class ValueRange:
    """What is known of the numbers of all examples.

    Attributes:
        dtype: NumPy's name of their type.
        largest: The largest number of that type, where its range says what they may be: 255 for uint8, 65535 for
            uint16, 1 for bool; ``None`` for fractions and all other integers.
        pixels: Whether they are pixels of images.
        declared: Whether the source declares that, and not their type and shape alone.
    """

    dtype: str = "float32"
    largest: int | None = None
    pixels: bool = False
    declared: bool = True

    @classmethod
    def of_array(cls, dtype: str, example: tuple[int, ...]) -> Self:
        """What can be told of an array by its type and by the shape of one example.

        Only uint8 and uint16 in the shape of images are taken as pixels.
        """
        pixels = dtype in ("uint8", "uint16") and is_image(example)
        return cls(dtype, _LARGEST.get(dtype), pixels, declared=False)

    @property
    def noun(self) -> str:
        """What they are called."""
        return "pixels" if self.pixels else "numbers"


PIXELS = ValueRange("uint8", 255, pixels=True)
"""Those of images of 8 bits that their source declares."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """What is done to raw numbers before the model takes them.

    Attributes:
        factor: What they are multiplied with.
        words: The same for a summary, as in ``pixels scaled by 1/255``.
        note: What the user should be told of it beside that.
    """

    factor: float
    words: str
    note: str = ""


def choose_scaling(scale: str, numbers: ValueRange, preprocessing: str = "") -> Scaling:
    """Decide whether numbers are scaled.

    Args:
        scale: A plan's: ``auto`` scales pixels to [0, 1] unless the model begins with its own preprocessing,
            ``0-1`` divides whole numbers by the largest of their type, ``none`` leaves all as they are.
        numbers: What is known of them.
        preprocessing: The layer with which the model takes raw numbers; empty where none is seen.

    Raises:
        PlanError: ``0-1`` is asked for, and the range of their type says nothing.
    """
    if scale == "0-1" and numbers.largest is None:
        raise PlanError(
            "scale",
            scale,
            f"divides uint8 by 255 and uint16 by 65535; the examples are {numbers.dtype}, which has no such range: "
            "use auto or none, and scale them in the file or the model",
        )
    if scale == "none" or (scale == "auto" and not numbers.pixels) or numbers.largest is None:
        return scaling_by(1.0, numbers.noun)
    if scale == "auto" and preprocessing:
        return Scaling(1.0, f"pixels not scaled: the model has a layer {preprocessing}")
    chosen = scaling_by(1 / numbers.largest, numbers.noun)
    if scale == "auto" and not numbers.declared:
        note = f"{numbers.dtype} in the shape of images is taken as pixels: {chosen.words} (--scale none keeps them)"
    elif preprocessing:
        note = f"{chosen.words}, as the plan says, and the model has a layer {preprocessing}"
    else:
        note = ""
    return Scaling(chosen.factor, chosen.words, note)


def scaling_by(factor: float, noun: str) -> Scaling:
    """The scaling by a factor, in words."""
    return Scaling(factor, f"{noun} not scaled" if factor == 1 else f"{noun} scaled by 1/{round(1 / factor)}")
