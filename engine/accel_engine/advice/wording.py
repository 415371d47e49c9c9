"""Figures in the sentences of advice."""

from accel_engine import text


def percent(share: float) -> str:
    """A share from 0 to 1, such as ``42%``; below one percent with a decimal."""
    return text.percent(share, 0) if 0.01 <= share < 0.995 else text.percent(share)


def duration(seconds: float) -> str:
    """A duration, such as ``0.8 s``, ``42 s``, ``3 min`` or ``2.5 h``."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def size(count: float) -> str:
    """A number of bytes, such as ``1.2 GiB``."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def times(factor: float) -> str:
    """A factor, such as ``1.5 times``."""
    return f"{factor:.2g} times" if factor < 10 else f"{factor:.0f} times"
