"""Amounts as text: durations, sizes, counts, numbers, rates and percentages, each with its style and its unit."""

import math
from collections.abc import Callable, Iterable, Sequence

_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

LENGTHS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
"""Units of time in seconds, the longest first."""

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


def span(seconds: float, digits: int = 2) -> str:
    """A length of time in a sentence, in its largest unit: ``0.35 s``, ``42 s``, ``2.5 h``, ``1 d``.

    Args:
        seconds: The time.
        digits: Significant digits, at least.
    """
    length, unit = next((each for each in LENGTHS if seconds >= each[0]), LENGTHS[-1])
    number = seconds / length
    return f"{number:.0f} {unit}" if number >= 10**digits - 0.5 else f"{number:.{digits}g} {unit}"


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


def metric(number: float) -> str:
    """A measured value, written the same way everywhere, in eight characters at most.

    Four digits, with a decimal prefix from 10,000 on: ``0.2867``, ``12.35``, ``1234``, ``12.35k``, ``1.557G``. What is
    smaller or larger has three and a power of ten: ``3.2e-5``, ``2.15e20``.
    """
    rounded = float(f"{number:.4g}")
    size = abs(rounded)
    if not math.isfinite(number) or 1e-3 <= size < 10 or not size:
        return f"{number:.4f}"
    if not 1e-3 <= size < 1e15:
        digits, power = f"{number:.2e}".split("e")
        return f"{float(digits):g}e{int(power)}"
    unit, suffix = next((each for each in _DECIMAL if size >= each[0] and size >= 1e4), (1.0, ""))
    return f"{rounded / unit:.4g}{suffix}"


def value(number: float) -> str:
    """A value of the user's data: six digits, or all before the decimal point: ``208.8``, ``1331440``, ``3e-09``."""
    return f"{number:.0f}" if 1e6 <= abs(number) < 1e15 else f"{number:.6g}"


def learning_rate(value: float) -> str:
    """A learning rate in four digits: ``0.0005``, ``3e-6``."""
    return f"{value:.4g}".replace("e-0", "e-")


def short_size(count: float) -> str:
    """The short form of :func:`size`, for lines of devices only: ``80B``, ``1.2M`` for MiB, ``23.4G`` for GiB."""
    step = 0
    while count >= 1000 and step < len(_BINARY) - 1:
        count /= 1024
        step += 1
    return f"{count:.1f}{_BINARY[step]}" if step and count < 99.95 else f"{count:.0f}{_BINARY[step]}"


def size(count: float) -> str:
    """A number of bytes with its unit: ``80 B``, ``1.2 MiB``, ``23.4 GiB``."""
    text = short_size(count)
    return f"{text[:-1]} B" if text.endswith("B") else f"{text[:-1]} {text[-1]}iB"


def size_of(part: float, whole: float) -> str:
    """A part of a number of bytes, in the same unit: ``4.0 / 16.0 GiB``."""
    text = size(whole)
    step = _BINARY.index(text.rpartition(" ")[2][0])
    return f"{part / 1024**step:.1f} / {text}"


def in_one_form(text: Callable[[float], str], values: Iterable[float]) -> Callable[[float], str]:
    """The form in which a column writes its numbers: all in the unit of the largest one, with equal decimals.

    Args:
        text: How one number is written: :func:`metric`, :func:`compact`, :func:`latency` or :func:`size`.
        values: The numbers of the column.

    Returns:
        ``text`` itself where nothing has a unit, or where the smallest number would have less than two digits, or less
        than three of a :func:`metric`.
    """
    sizes = [abs(each) for each in values if each and math.isfinite(each)]
    if text not in _FORMS or not sizes:
        return text
    low, high = min(sizes), max(sizes)
    suffix = text(high).lstrip("0123456789.")
    units, digits, least = _FORMS[text]
    unit = units.get(suffix)
    if unit is None or (not suffix and text(low).lstrip("0123456789.") == suffix):
        return text
    own = len(text(high).removesuffix(suffix).partition(".")[2])
    decimals = max(digits - len(f"{high / unit:.0f}"), own)
    while decimals < _MOST_DECIMALS and low / unit * 10**decimals < least:
        decimals += 1
    if low / unit * 10**decimals < least:
        return text
    return lambda number: f"{number / unit:.{decimals}f}{suffix}" if math.isfinite(number) else text(number)


_MOST_DECIMALS, _TWO_DIGITS, _THREE_DIGITS = 3, 9.5, 99.5

_FORMS: dict[Callable[[float], str], tuple[dict[str, float], int, float]] = {
    metric: ({name: unit for unit, name in _DECIMAL}, 4, _THREE_DIGITS),
    compact: ({name: unit for unit, name in ((1e18, "E"), (1e15, "P"), *_DECIMAL)}, 3, _TWO_DIGITS),
    latency: ({" µs": 1e-6, " ms": 1e-3, " s": 1.0}, 3, _TWO_DIGITS),
    size: ({" B": 1.0, **{f" {name}iB": 1024.0**power for power, name in enumerate("KMGT", 1)}}, 0, _TWO_DIGITS),
}
"""The units of a form by their names, how many digits the largest number of a column has, and the smallest has."""


def percent(share: float, digits: int | None = None) -> str:
    """A share from 0 to 1 as a percentage; only all is ``100%``, and only none ``0%``.

    Args:
        share: The share; one above 1 is above 100%.
        digits: Digits behind the point, with ``>99%`` and ``<1%`` next to the ends; by default two digits, and near
            100% as many as tell it from that: ``41%``, ``3.2%``, ``0.05%``, ``99.7%``, ``over 99.99%``.
    """
    if share in (0.0, 1.0) or not math.isfinite(share):
        return f"{share:.{digits or 0}%}"
    if digits is not None:
        shown, least = f"{share:.{digits}%}", 10.0**-digits
        if float(shown[:-1]) not in (0.0, 100.0):
            return shown
        return f"<{least:.{digits}f}%" if share < 0.5 else f"{'>' if share < 1 else ''}{100 - least:.{digits}f}%"
    if share < 0.0001:
        return "under 0.01%"
    if share < 0.0995:
        return f"{100 * share:.2g}%"
    if not 0.995 <= share < 1.005:
        return f"{share:.0%}"
    shown = next((text for text in (f"{share:.1%}", f"{share:.2%}") if float(text[:-1]) != 100), "")
    return shown or ("over 99.99%" if share < 1 else "over 100%")


def times(ratio: float) -> str:
    """How many times as much, in two digits, or three from 1 to 2: ``0.28 times``, ``1.25 times``, ``17 times``."""
    if ratio >= 9.95:
        return f"{ratio:,.0f} times"
    return f"{float(f'{ratio:.{3 if 1 <= ratio < 2 else 2}g}'):g} times"


def count(number: int) -> str:
    """A whole number with thousands separators: ``1,437``."""
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """A count with its noun: ``1 step``, ``1,437 steps``, ``10 classes``."""
    return f"{count(number)} {plural(number, noun)}"


def plural(number: float, noun: str) -> str:
    """A noun as it follows a number: ``step``, ``steps``, ``classes``."""
    return noun if number == 1 else f"{noun}{'es' if noun.endswith('s') else 's'}"


def listed(names: Iterable[str], most: int = 5) -> str:
    """Some names, and how many more there are: ``a, b and 3 more``."""
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


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
