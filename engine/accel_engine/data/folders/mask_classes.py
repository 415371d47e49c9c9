"""Turns the values of masks into class indices."""

from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.errors import DataError

MAX_CLASSES = 256
"""Largest number of different values of masks."""

_UNSEEN = 0xFFFF
_GREY = 0x010101


class MaskClasses:
    """Collects the colours of masks, and numbers them in the order in which they appear until all are known.

    Any thread may encode masks.
    """

    def __init__(self) -> None:
        self._colours: list[int] = []
        self._others: dict[int, str] = {}
        self._index = np.full(1 << 24, _UNSEEN, np.uint16)
        self._final = np.zeros(0, np.uint8)
        self._palette = b""
        self._have_other_palettes = False
        self._lock = Lock()

    def encode(self, colours: npt.NDArray[np.int32], palette: bytes = b"", other: str = "") -> npt.NDArray[np.uint8]:
        """Convert colours, ``0xRRGGBB``, to class indices, ``[...]``.

        Args:
            colours: The colours, or equal values of red, green and blue.
            palette: The palette whose places the values are; empty for none.
            other: The file of a mask that has no say in what the classes are; empty for the others.

        Raises:
            DataError: There are more than :data:`MAX_CLASSES` colours.
        """
        if palette != self._palette[: len(palette)]:
            with self._lock:
                longer, shorter = sorted((palette, self._palette), key=len, reverse=True)
                self._have_other_palettes |= not longer.startswith(shorter)
                self._palette = longer
        indices = self._index[colours]
        if (indices == _UNSEEN).any() or (self._others and not other):
            with self._lock:
                self._number(np.unique(colours), other)
            indices = self._index[colours]
        return indices.astype(np.uint8)

    def _number(self, colours: npt.NDArray[np.int32], other: str) -> None:
        if not other:
            for colour in self._others.keys() & colours.tolist():
                del self._others[colour]
        for colour in colours[self._index[colours] == _UNSEEN].tolist():
            if len(self._colours) == MAX_CLASSES:
                raise DataError(
                    f"the masks have more than {MAX_CLASSES} different values; each value must be a class. Masks "
                    "that were smoothed, or saved as JPEG in between, have other values at their edges"
                )
            if other:
                self._others[colour] = other
            self._colours.append(colour)
            self._index[colour] = len(self._colours) - 1

    def finish(self, class_names: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
        """Decide the final class of each colour; :meth:`encode` returns it from now on.

        Values 0 to C - 1 are classes; 0 and 255 are two classes; other values are numbered in their order.

        Args:
            class_names: Names that the user gave.

        Returns:
            Names of the classes, and notes for the user.

        Raises:
            DataError: There is only one value, or another number of them than of class names; or some masks have
                places in a palette and others colours; or a mask that has no say has a value of no class.
        """
        values = [_value(colour) for colour in self._colours if colour not in self._others]
        if len(values) < 2:
            raise DataError(f"all pixels of all masks have the value {values[0]}; segmentation needs two classes")
        ordered: list[Any] = sorted(values, key=lambda value: (isinstance(value, str), value))
        numbers = [value for value in ordered if isinstance(value, int)]
        notes: list[str] = []
        if self._palette and len(numbers) < len(ordered):
            raise DataError("some masks have a palette, whose places are classes, and others colours: save all alike")
        if self._have_other_palettes:
            notes.append("the masks have different palettes: the places of the colours in them are the classes")
        if len(numbers) == len(ordered) and numbers[-1] < (len(class_names) or len(numbers)):
            ordered = list(range(len(class_names) or len(numbers)))
        elif class_names and len(class_names) != len(ordered):
            raise DataError(
                f"{len(class_names)} classes are named, but the masks have {len(ordered)} values: {_listed(ordered)}"
            )
        else:
            notes.append(f"mask values {_listed(ordered)} are classes 0 to {len(ordered) - 1}")
        for colour, file in self._others.items():
            if (value := _value(colour)) not in ordered:
                raise DataError(f"the mask {file} has the value {value}; the classes are {_listed(ordered)}")
        self._final = np.array([ordered.index(_value(colour)) for colour in self._colours], np.uint8)
        self._index[self._colours] = self._final
        return class_names or tuple(map(str, ordered)), notes

    def apply(self, masks: npt.NDArray[np.uint8]) -> None:
        """Replace the indices that :meth:`encode` returned before :meth:`finish`, in place."""
        if not np.array_equal(self._final, np.arange(len(self._final))):
            for each in masks:  # one at a time takes little memory
                each[...] = self._final[each]


def _value(colour: int) -> int | str:
    """The value of a colour: its shade of grey, or its name."""
    return colour // _GREY if colour % _GREY == 0 else f"#{colour:06x}"


def _listed(values: list[Any]) -> str:
    shown = values if len(values) <= 8 else [*values[:6], "…", values[-1]]
    return ", ".join(map(str, shown))
