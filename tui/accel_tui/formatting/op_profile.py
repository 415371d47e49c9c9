"""The profile of a run's operations as tables, for the command and the screen."""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from accel_engine.run.diagnostics.model_items import LAYERS, OpProfile, ProfiledOperation
from accel_engine.words import numbers
from accel_tui.formatting.bars import bar
from accel_tui.formatting.table_columns import DrawnColumn, ResultTable

MOST_ROWS = 20
"""The most operations, and the most groups, that are listed; ``--json`` has more."""

_BAR = 24  # most cells of a bar

_ONE_DNN = re.compile(r"^_Mkl(Native)?")
"""The beginning of the types of operations that oneDNN computes in place of TensorFlow's own kernels."""

_LANES = {"cpu": "thread", "gpu": "stream"}


def profile_headline(profile: OpProfile) -> str:
    """How long what was traced, and how much of the time devices ran nothing."""
    steps = ""
    if profile.steps:
        each = numbers.latency(profile.seconds / profile.steps)
        steps = f"{numbers.counted(profile.steps, 'step')} of {each}, "
    devices = profile.device.upper()
    if profile.devices > 1:
        devices = f"{profile.devices} {devices}s"
    lanes = numbers.counted(profile.lanes, _LANES.get(profile.device, "core"))
    return f"{steps}{profile.seconds:.2f} s on the {devices}, {lanes}: {numbers.percent(profile.idle)} idle"


def profile_tables(profile: OpProfile, most: int = MOST_ROWS) -> Iterator[ResultTable]:
    """Yield the costliest operations, the layers or name scopes, and the gaps.

    Args:
        profile: The profile.
        most: The most rows of a table.
    """
    shown = profile.operations[:most]
    left = len(profile.operations) - len(shown) + profile.others
    time = "PER STEP" if profile.steps else "TIME"
    header = ("SHARE", time, "RUNS", "FLOP/s", "B/s", "OF PEAK", _group_title(profile), "OPERATION")
    note = f"{numbers.counted(left, 'cheaper operation')} not shown." if left else ""
    drawn = (_bars([each.seconds for each in shown]), _peaks(shown, profile))
    yield ResultTable(header, [_operation_row(each, profile) for each in shown], "Operations", note, drawn=drawn)
    groups = profile.groups[:most]
    rows = [
        (
            _share(each.seconds, profile),
            _time(each.seconds, profile),
            _rate(each.flops, each.seconds),
            each.name or "other operations",
        )
        for each in groups
    ]
    left = len(profile.groups) - len(groups)
    note = f"{left:,} more not shown." if left else ""
    titles, bars = ("SHARE", time, "FLOP/s", _group_title(profile)), _bars([each.seconds for each in groups])
    yield ResultTable(titles, rows, profile.grouped_by.capitalize(), note, drawn=(bars,))
    if profile.gaps:
        whole = max(profile.seconds * profile.devices, sum(gap.seconds for gap in profile.gaps))
        gaps = [
            (f"{gap.count:,}", numbers.latency(gap.longest), numbers.percent(gap.seconds / whole))
            for gap in profile.gaps
        ]
        bars = DrawnColumn("OF THE TIME", [partial(bar, gap.seconds / whole) for gap in profile.gaps], widest=_BAR)
        what = "on all devices" if profile.devices > 1 else f"in which the {profile.device.upper()} ran nothing"
        yield ResultTable(("GAPS", "UP TO", "OF THE TIME"), gaps, f"Gaps {what}", drawn=(bars,))


def _bars(seconds: Sequence[float]) -> DrawnColumn:
    """Bars of times, the longest whole."""
    longest = max(seconds, default=0.0) or 1.0
    return DrawnColumn("SHARE", [partial(bar, each / longest) for each in seconds], widest=_BAR)


def _peaks(shown: Sequence[ProfiledOperation], profile: OpProfile) -> DrawnColumn:
    """How near operations are to the roofline."""
    shares = [(_peak_share(each, profile) or (0.0, ""))[0] for each in shown]
    return DrawnColumn("OF PEAK", [partial(bar, each) for each in shares], colour="secondary", widest=_BAR // 2)


def profile_notes(profile: OpProfile) -> Iterator[str]:
    """Yield what the figures mean, and what restricts them, in sentences."""
    if profile.total > 1.005 * profile.busy * profile.devices:
        yield "Shares are of the time of all operations, of which several ran at once."
    known = numbers.flops(profile.peak_flops) + "/s" if profile.peak_flops is not None else "unknown"
    source = profile.peak_source or "nothing is known of the device"
    memory = f"; of memory {_bytes_rate(profile)}" if profile.peak_bytes else ""
    yield f"Peak: {known} ({source}){memory}."
    yield from profile.notes


def _bytes_rate(profile: OpProfile) -> str:
    """The peak of the memory, with its source."""
    rate = numbers.flops(profile.peak_bytes or 0.0).replace("FLOP", "B")
    return f"{rate}/s ({profile.bytes_source})" if profile.bytes_source else f"{rate}/s"


def _peak_share(operation: ProfiledOperation, profile: OpProfile) -> tuple[float, str] | None:
    """How near an operation is to the roofline: the share of what limits it, and what that is; ``None`` if unknown.

    Above 1, its data came from a cache.
    """
    if not operation.seconds:
        return None
    limits = [(operation.flops, profile.peak_flops, "compute"), (operation.bytes, profile.peak_bytes, "memory")]
    least = [(amount / peak, name) for amount, peak, name in limits if amount and peak]
    if not least:
        return None
    seconds, name = max(least)
    return seconds * operation.count / operation.seconds, name


def _group_title(profile: OpProfile) -> str:
    return "LAYER" if profile.grouped_by == LAYERS else "SCOPE"


def _operation_row(operation: ProfiledOperation, profile: OpProfile) -> tuple[str, ...]:
    near = _peak_share(operation, profile)
    reached = (
        ""
        if near is None
        else "cache"
        if near[0] > 1 and near[1] == "memory"
        else f"{numbers.percent(near[0], 0)} {near[1]}"
    )
    name, kind = operation.name, _ONE_DNN.sub("", operation.kind)
    if kind and not name.endswith(kind):
        name = f"{kind}  {name}"
    kernel = f"  [{operation.kernel}]" if operation.kernel else ""
    return (
        _share(operation.seconds, profile),
        _time(operation.seconds, profile),
        f"{operation.count / profile.steps:.3g}" if profile.steps else f"{operation.count:,}",
        _rate(operation.flops and operation.flops * operation.count, operation.seconds),
        _rate(operation.bytes and operation.bytes * operation.count, operation.seconds),
        reached,
        operation.group,
        f"{name}{kernel}",
    )


def _share(seconds: float, profile: OpProfile) -> str:
    return numbers.percent(seconds / profile.total) if profile.total else ""


def _time(seconds: float, profile: OpProfile) -> str:
    return numbers.latency(seconds / (profile.steps or 1))


def _rate(amount: float | None, seconds: float) -> str:
    return numbers.compact(float(amount / seconds)) if amount and seconds else ""
