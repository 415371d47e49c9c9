"""Formats durations, rates and metrics; bytes, counts and ages are in ``units``."""

import math


def duration(seconds: float) -> str:
    """A duration, rounded to seconds: ``0:07``, ``12:34``, ``3:05:09``, ``2d 04h``."""
    minutes, second = divmod(max(0, round(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour:02}h"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def time_taken(word: str, seconds: float, before: float | None, first_step: int) -> str:
    """How long engines trained a run: ``after 4:37, 0:13 since step 1,000``.

    Args:
        word: The preposition: ``in`` or ``after``.
        seconds: Seconds of the latest engine.
        before: Seconds of the engines before it; ``None`` if unknown, when only the latest is shown.
        first_step: The step that the latest engine started at.
    """
    if before:
        return f" {word} {duration(before + seconds)}, {duration(seconds)} since step {first_step:,}"
    if before is None and first_step:
        return f", {duration(seconds)} since step {first_step:,}"
    return f" {word} {duration(seconds)}"


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


def metric(value: float) -> str:
    """A loss or an accuracy in four digits: ``0.2867``, ``12.35``, ``3.2e-5``."""
    if 0 < abs(value) < 1e-3:
        return f"{value:.2g}".replace("e-0", "e-")
    return f"{value:.4f}" if abs(value) < 10 or not math.isfinite(value) else f"{value:.4g}"
