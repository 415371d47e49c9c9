"""Formats numbers: durations, rates, metrics, bytes, counts, FLOPs, shapes and ages."""

import math
from collections.abc import Sequence

from accel_engine.text import format_metric, percent

_BINARY = ("B", "K", "M", "G", "T")


def duration(seconds: float) -> str:
    """A duration, rounded to seconds: ``0:07``, ``12:34``, ``3:05:09``, ``2d 04h``; ``—`` if it is not finite."""
    if not math.isfinite(seconds):
        return "—"
    minutes, second = divmod(max(0, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour:02}h"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def latency(seconds: float) -> str:
    """A short time in three digits: ``85.0 µs``, ``1.25 ms``, ``640 ms``, ``2.50 s``."""
    for unit, name in ((1e-6, "µs"), (1e-3, "ms")):
        if seconds < 999.5 * unit:
            return f"{compact(float(seconds / unit))} {name}"
    return f"{compact(float(seconds))} s"


def time_taken(word: str, seconds: float, before: float | None, first_step: int) -> str:
    """How long engines trained a run: ``after 4:37, 0:13 since step 1,000``; empty if that is unknown.

    Args:
        word: The preposition: ``in`` or ``after``.
        seconds: Seconds of the latest engine; 0 if unknown.
        before: Seconds of the engines before it; ``None`` if unknown, when only the latest is shown.
        first_step: The step that the latest engine started at.
    """
    if before:
        return f" {word} {duration(before + seconds)}, {duration(seconds)} since step {first_step:,}"
    if before is None and first_step:
        return f", {duration(seconds)} since step {first_step:,}"
    return f" {word} {duration(seconds)}" if seconds else ""


def compact(number: float) -> str:
    """A number in three digits with a decimal prefix: ``7.25``, ``648``, ``62.3k``; an ``int`` below 1000 is exact."""
    if isinstance(number, int) and abs(number) < 1000:
        return str(number)
    prefixes = ["E", "P", "T", "G", "M", "k", ""]
    while abs(number) >= 999.5 and len(prefixes) > 1:
        prefixes.pop()
        number /= 1000
    whole = 3 if abs(number) >= 99.95 else 2 if abs(number) >= 9.995 else 1
    return f"{number:.{3 - whole}f}{prefixes[-1]}"


def learning_rate(value: float) -> str:
    """A learning rate in four digits: ``0.0005``, ``3e-6``."""
    return f"{value:.4g}".replace("e-0", "e-")


metric = format_metric
"""A loss or an accuracy as in the engine's messages."""


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


def examples_done(done: int, of: int) -> str:
    """How many examples are done: ``256 of 2,000 examples``; ``256 examples`` if it is unknown of how many."""
    return f"{done:,} of {of:,} examples" if of else f"{done:,} examples"


def flops(number: float) -> str:
    """Floating-point operations in decimal multiples: ``7.76 GFLOP``, ``989 TFLOP``."""
    text = compact(float(number))
    digits = text.rstrip("kMGTPE")
    return f"{digits} {text[len(digits) :]}FLOP"


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


def shape(sides: Sequence[int | None]) -> str:
    """The shape of an example: ``28x28x1``, with ``?`` for a dimension of any size."""
    return "x".join("?" if side is None else str(side) for side in sides) or "a single number"
