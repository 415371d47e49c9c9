"""Amounts as people read them: bytes, counts, shapes, times past. Durations and metrics are in ``figures``."""

from collections.abc import Sequence

from accel_tui.formatting import figures

_BINARY = ("B", "K", "M", "G", "T")


def size(count: float) -> str:
    """Bytes in binary multiples: ``80B``, ``1.2M``, ``512M``, ``23.4G``."""
    step = 0
    while count >= 1000 and step < len(_BINARY) - 1:
        count /= 1024
        step += 1
    return f"{count:.1f}{_BINARY[step]}" if step and count < 99.95 else f"{count:.0f}{_BINARY[step]}"


def count(number: int) -> str:
    """A whole number with its thousands apart: ``1,437``."""
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """A count with its noun: ``1 step``, ``1,437 steps``."""
    return f"{count(number)} {noun}{'s' * (number != 1)}"


def flops(number: float) -> str:
    """Floating-point operations in decimal multiples: ``7.76 GFLOP``, ``989 TFLOP``."""
    text = figures.compact(float(number))
    digits = text.rstrip("kMGTPE")
    return f"{digits} {text[len(digits) :]}FLOP"


def percent(share: float) -> str:
    """A share of one, in two digits: ``41%``, ``3.2%``, ``0.05%``."""
    if share < 0.0001:
        return "under 0.01%"
    return f"{share:.0%}" if share >= 0.0995 else f"{100 * share:.2g}%"


def speed(reached: float | None, share: float | None) -> str:
    """Operations a second and their share of the peak: ``12.3 GFLOP/s, MFU 41%``; nothing where unknown."""
    if reached is None:
        return ""
    return f"{flops(reached)}/s" + ("" if share is None else f", MFU {percent(share)}")


def ago(seconds: float) -> str:
    """How long something is past, in one unit: ``now``, ``42s ago``, ``5m ago``, ``3d ago``."""
    for length, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= length:
            return f"{seconds // length:.0f}{unit} ago"
    return "now" if seconds < 5 else f"{seconds:.0f}s ago"


def shape(sides: Sequence[int]) -> str:
    """The shape of an example: ``28x28x1``."""
    return "x".join(map(str, sides)) or "a single number"
