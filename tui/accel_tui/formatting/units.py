"""Formats bytes, counts, FLOPs, shapes and ages; durations and metrics are in ``numbers``."""

from collections.abc import Sequence

from accel_tui.formatting import numbers

_BINARY = ("B", "K", "M", "G", "T")


def size(count: float) -> str:
    """A number of bytes in binary multiples: ``80B``, ``1.2M``, ``512M``, ``23.4G``."""
    step = 0
    while count >= 1000 and step < len(_BINARY) - 1:
        count /= 1024
        step += 1
    return f"{count:.1f}{_BINARY[step]}" if step and count < 99.95 else f"{count:.0f}{_BINARY[step]}"


def long_size(count: float) -> str:
    """A number of bytes with its unit: ``80 B``, ``1.2 MiB``, ``23.4 GiB``."""
    text = size(count)
    return f"{text[:-1]} B" if text.endswith("B") else f"{text[:-1]} {text[-1]}iB"


def count(number: int) -> str:
    """A whole number with thousands separators: ``1,437``."""
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """A count with its noun: ``1 step``, ``1,437 steps``, ``10 classes``."""
    suffix = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{count(number)} {noun}{suffix}"


def flops(number: float) -> str:
    """Floating-point operations in decimal multiples: ``7.76 GFLOP``, ``989 TFLOP``."""
    text = numbers.compact(float(number))
    digits = text.rstrip("kMGTPE")
    return f"{digits} {text[len(digits) :]}FLOP"


def percent(share: float) -> str:
    """A share from 0 to 1 as a percentage of two digits: ``41%``, ``3.2%``, ``0.05%``."""
    if share < 0.0001:
        return "under 0.01%"
    return f"{share:.0%}" if share >= 0.0995 else f"{100 * share:.2g}%"


def speed(flops_per_second: float | None, mfu: float | None) -> str:
    """Achieved FLOPs per second and MFU: ``12.3 GFLOP/s, MFU 41%``; empty if unknown."""
    if flops_per_second is None:
        return ""
    return f"{flops(flops_per_second)}/s" + ("" if mfu is None else f", MFU {percent(mfu)}")


def ago(seconds: float) -> str:
    """An age in its largest unit: ``now``, ``42s ago``, ``5m ago``, ``3d ago``."""
    for length, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= length:
            return f"{seconds // length:.0f}{unit} ago"
    return "now" if seconds < 5 else f"{seconds:.0f}s ago"


def shape(sides: Sequence[int]) -> str:
    """The shape of an example: ``28x28x1``."""
    return "x".join(map(str, sides)) or "a single number"
