"""Reduces a trace to its costliest operations, their groups, and the gaps in which a device ran nothing.

Where a trace has a GPU or a TPU, its operations are what that ran, as its streams say. Otherwise they are what threads
of the host ran, as TensorFlow's executor and XLA say. Operations within others on the same thread do not count twice:
of each, only its own time counts. XLA runs instructions on a CPU beside others: one lasts until XLA says that it has
ended. What only runs others, such as a loop or a call of a function, is left out: its time is theirs, or waiting.
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

from accel_engine.errors import RunError
from accel_engine.events import Phase
from accel_engine.op_profile.op_names import graph_name, innermost_mark, scopes, shown_name, split_operation
from accel_engine.op_profile.trace_file import Stat, TraceEvent, TraceLine, TracePlane, read_trace
from accel_engine.op_profile.xla_programs import CONTROL, InstructionCost, Program, read_programs
from accel_engine.protobuf import MalformedError
from accel_engine.run.diagnostics.model_items import LAYERS, SCOPES, Gap, OperationGroup, OpProfile, ProfiledOperation
from accel_engine.words import numbers

MOST_OPERATIONS = 100
"""Operations of a profile; the others are counted."""

UNNAMED_SHARE = 0.01
"""Share of the time without a name from which a profile says so."""

GAP_SECONDS = (1e-5, 1e-4, 1e-3)
"""Gaps are counted up to each of these lengths, and longer ones."""

_HOST, _GPU, _TPU = "/host:CPU", "/device:GPU:", "/device:TPU:"
_STREAM, _TPU_OPERATIONS = "Stream #", "XLA Ops"
_ENVIRONMENT, _ENDED = "Task Environment", "end: "

_CALLS = frozenset(
    {
        *("While", "StatelessWhile", "If", "StatelessIf", "PartitionedCall", "StatefulPartitionedCall"),
        *("XlaLaunch", "XlaLaunchV2", "XlaRun"),
    }
)
"""Operations of TensorFlow that only run others, and wait for them."""

_INPUT = "IteratorGetNext"
"""The beginning of the types of operations that wait for the input pipeline."""

_APART = {
    Phase.VALIDATING: ("a validation", "validations"),
    Phase.CHECKPOINTING: ("a checkpoint", "checkpoints"),
    Phase.TRACING: ("a tracing", "tracings"),
}
"""Phases in which no steps are taken, in words."""

_SCOPE_NUMBER = re.compile(r"(_\d+)+$")
"""What Keras and TensorFlow append to a name scope that is there already."""

Spans: TypeAlias = list[tuple[int, int]]


class OperationCost(NamedTuple):
    """The cost of one execution of an operation; ``None`` where it is unknown."""

    flops: float | None
    """Floating-point operations."""
    bytes: float | None
    """Bytes of its inputs and outputs."""


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """Facts on a trace besides its files.

    Attributes:
        peak_flops, peak_source, peak_bytes, bytes_source: As in :class:`OpProfile`.
    """

    steps: int | None = None
    """Steps in the trace; ``None`` if unknown."""
    layers: Mapping[int, str] = field(default_factory=dict)
    """The names of the model's layers by the numbers in marks; empty where layers are not marked."""
    cost_of: Callable[[str, str], OperationCost | None] = lambda *_: None
    """What an operation of TensorFlow takes, by its name in its graph and the type of what runs."""
    entered: tuple[tuple[Phase, int], ...] = ()
    """Phases in order, with the nanoseconds since 1970 when each was entered. Operations between the steps, such as
    a validation's, do not count, and neither does their time."""
    accelerator: str = ""
    """``gpu`` or ``tpu`` where these train, whose operations the trace should have; else empty."""
    peak_flops: float | None = None
    peak_source: str = ""
    peak_bytes: float | None = None
    bytes_source: str = ""
    notes: tuple[str, ...] = ()
    """As in :class:`OpProfile`."""
    path: str = ""
    """As ``trace`` of :class:`OpProfile`."""


class _Ran(NamedTuple):
    """An operation that ran once."""

    begin: int
    """Its beginning in picoseconds."""
    end: int
    """The end of its call."""
    last: int
    """Its end, which is later where it runs on beside others."""
    key: "_Key"
    """Says which operation it is, see :class:`_Key`."""
    fills: bool = True
    """Whether something computes all the time, which is not so while it waits for the input pipeline."""


class _Key(NamedTuple):
    """Which operation it is."""

    name: str
    """The name of a TensorFlow operation, of an instruction of XLA or of a kernel."""
    kind: str = ""
    """The type of a TensorFlow operation; empty for others."""
    program: int | str = ""
    """The number or the name of a program of XLA; empty without."""
    kernel: str = ""
    """The kernel of a GPU."""


def reduce_trace(folder: Path, facts: TraceFacts) -> OpProfile:
    """Reduce the trace in a folder.

    Raises:
        RunError: The trace cannot be read, or has no operations.
    """
    try:
        return reduce_planes(read_trace(folder), facts)
    except (MalformedError, IndexError) as error:  # within an event or a program, which are read when they are needed
        raise RunError(f"the trace in {folder} cannot be read: {error}") from error


def reduce_planes(planes: Sequence[TracePlane], facts: TraceFacts) -> OpProfile:
    """Reduce the planes of a trace; without operations, ``seconds`` of the profile is 0."""
    programs = read_programs(planes)
    device, chosen, lanes = "cpu", [plane for plane in planes if plane.name == _HOST], list[list[list[_Ran]]]()
    for prefix, kind, lines_of in ((_GPU, "gpu", _streams), (_TPU, "tpu", _tpu_lines)):
        found = [plane for plane in planes if plane.name.startswith(prefix) and plane.name[len(prefix) :].isdigit()]
        lanes = [[lane for line in lines_of(plane) if (lane := list(_device_lane(plane, line)))] for plane in found]
        if any(lanes):
            device, chosen = kind, found
            break
    else:
        lanes = [[lane for plane in chosen for lane in _host_lanes(plane, programs) if lane]]
    if facts.accelerator and device == "cpu":
        kind = facts.accelerator.upper()
        missing = f"the trace has no operations of the {kind}: these are the host's, which start them"
        facts = replace(facts, notes=(*facts.notes, missing))
    if device == "gpu" and facts.peak_bytes is None:
        bandwidth = chosen[0].stats.get("memory_bandwidth")
        if isinstance(bandwidth, int | float) and bandwidth > 0:
            facts = replace(facts, peak_bytes=float(bandwidth), bytes_source="the memory's clock and bus width")
    time = _traced_time(planes)
    apart: Spans = []
    if time:  # events count in picoseconds from the beginning
        phases = list(_phases_apart(facts.entered, *time))
        facts = replace(facts, notes=(*facts.notes, *_notes_apart(phases)))
        apart = union((begin, end) for _, begin, end in phases)
        lanes = [[_outside(lane, apart) for lane in lines] for lines in lanes]
    lanes = [kept for lines in lanes if (kept := [lane for lane in lines if lane])]
    return _profile(device, lanes, programs, facts, 1000 * (time[1] - time[0]) if time else None, apart)


def _traced_time(planes: Sequence[TracePlane]) -> tuple[int, int] | None:
    """When the trace began and ended, in nanoseconds since 1970; ``None`` if it does not say so."""
    for plane in planes:
        began, ended = plane.stats.get("profile_start_time"), plane.stats.get("profile_stop_time")
        if plane.name == _ENVIRONMENT and isinstance(began, int) and isinstance(ended, int):
            return began, ended
    return None


def _phases_apart(entered: Sequence[tuple[Phase, int]], first: int, last: int) -> Iterator[tuple[Phase, int, int]]:
    """The phases without steps, with their beginnings and ends in picoseconds from the beginning of the trace.

    Args:
        entered: As in :class:`TraceFacts`.
        first: When the trace began, in nanoseconds since 1970.
        last: When it ended.
    """
    for (phase, begin), (_, end) in pairwise([*entered, (Phase.TRAINING, last)]):
        begin, end = max(begin, first), min(end, last)
        if phase in _APART and begin < end:
            yield phase, 1000 * (begin - first), 1000 * (end - first)


def _notes_apart(phases: Sequence[tuple[Phase, int, int]]) -> Iterator[str]:
    """Yield what came between the steps: one line for each kind."""
    for phase, (one, several) in _APART.items():
        found = [end - begin for each, begin, end in phases if each is phase]
        if found:
            what = f"{one.capitalize()} took" if len(found) == 1 else f"{len(found):,} {several} took"
            yield f"{what} {numbers.latency(sum(found) / 1e12)} of the trace, apart from the steps and in no share."


def _outside(lane: list[_Ran], spans: Spans) -> list[_Ran]:
    """The operations of a thread or a stream that began outside of spans, which do not overlap and are in order."""
    begins = [begin for begin, _ in spans]

    def is_within(time: int) -> bool:
        place = bisect_right(begins, time) - 1
        return place >= 0 and time < spans[place][1]

    return [ran for ran in lane if not is_within(ran.begin)] if spans else lane


def _streams(plane: TracePlane) -> list[TraceLine]:
    return [line for line in plane.lines if line.name.startswith(_STREAM)]


def _tpu_lines(plane: TracePlane) -> list[TraceLine]:
    return [line for line in plane.lines if line.name == _TPU_OPERATIONS]


def _device_lane(plane: TracePlane, line: TraceLine) -> Iterator[_Ran]:
    """The kernels and copies of a stream, each as a part of the operation that started it."""
    for event in line.events:
        if event.end <= event.begin:  # an allocation, which takes no time of the device
            continue
        stats, kernel = plane.stats_of(event.stats), plane.name_of(event.name)
        program = _program_of(stats)
        if instruction := stats.get("hlo_op"):
            key = _Key(str(instruction), "", program, kernel)
        elif found := split_operation(str(stats.get("tf_op", ""))):
            key = _Key(*found, "", kernel)
        else:
            key = _Key(kernel, "", program)
        yield _Ran(event.begin, event.end, event.end, key)


def _host_lanes(plane: TracePlane, programs: Mapping[int | str, Program]) -> Iterator[list[_Ran]]:
    """The operations of each thread of the host."""
    ends = _async_ends(plane)
    for line in plane.lines:
        yield list(_host_lane(plane, line, ends, programs))


def _async_ends(plane: TracePlane) -> dict[Stat, int]:
    """When instructions of XLA ended that ran beside others, by the number that their events have."""
    ends: dict[Stat, int] = {}
    for line in plane.lines:
        for event in line.events:
            if event.stats and plane.name_of(event.name).startswith(_ENDED):
                ends[plane.stats_of(event.stats).get("_c", "")] = event.begin
    return ends


def _host_lane(
    plane: TracePlane, line: TraceLine, ends: Mapping[Stat, int], programs: Mapping[int | str, Program]
) -> Iterator[_Ran]:
    found: dict[int, tuple[str, str] | None] = {}
    for event in line.events:
        if event.end <= event.begin:
            continue
        if event.name not in found:
            found[event.name] = split_operation(plane.name_of(event.name))
        if named := found[event.name]:
            if named[1].lstrip("_") not in _CALLS:
                yield _Ran(event.begin, event.end, event.end, _Key(*named), not named[1].startswith(_INPUT))
        elif event.stats:
            yield from _instruction(plane, event, ends, programs)


def _instruction(
    plane: TracePlane, event: TraceEvent, ends: Mapping[Stat, int], programs: Mapping[int | str, Program]
) -> Iterator[_Ran]:
    """An instruction of XLA, if the event is one."""
    stats = plane.stats_of(event.stats)
    if not (name := stats.get("hlo_op")):
        return
    key = _Key(str(name), "", _program_of(stats))
    cost = _cost_of(key, programs)
    if (cost.opcode if cost else key.name.partition(".")[0]) not in CONTROL:
        yield _Ran(event.begin, event.end, max(event.end, ends.get(stats.get("_p", ""), 0)), key)


def _program_of(stats: Mapping[str, Stat]) -> int | str:
    number = stats.get("program_id", stats.get("hlo_module", ""))
    return number if isinstance(number, int | str) else ""


def _cost_of(key: _Key, programs: Mapping[int | str, Program]) -> InstructionCost | None:
    program = programs.get(key.program)
    return program.costs.get(key.name) if program else None


def _own_times(lane: Iterable[_Ran]) -> Iterator[tuple[_Ran, int]]:
    """Each operation of a thread or a stream, with its time without those within it."""
    open_ones: list[_Ran] = []
    inner: list[int] = []  # of each of them, the time of those within it

    def closed() -> tuple[_Ran, int]:
        ran, within = open_ones.pop(), inner.pop()
        if open_ones:
            inner[-1] += max(0, min(ran.end, open_ones[-1].end) - ran.begin)
        return ran, max(0, ran.end - ran.begin - within) + ran.last - ran.end

    for ran in sorted(lane, key=lambda each: (each.begin, -each.end)):
        while open_ones and open_ones[-1].end <= ran.begin:
            yield closed()
        open_ones.append(ran)
        inner.append(0)
    while open_ones:
        yield closed()


def union(spans: Iterable[tuple[int, int]]) -> Spans:
    """Spans of time in which at least one of some is: in order, without overlaps."""
    merged: Spans = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


@dataclass(slots=True)
class _Sum:
    """The sums of one operation, over its kernels."""

    seconds: float = 0.0
    kernels: Counter[str] = field(default_factory=Counter)
    """Time by kernel, in picoseconds."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often each kernel ran."""


def _profile(
    device: str,
    lanes: Sequence[Sequence[Sequence[_Ran]]],
    programs: Mapping[int | str, Program],
    facts: TraceFacts,
    traced: int | None,
    apart: Spans,
) -> OpProfile:
    """The profile of what devices ran, by device and lane, within a time, except spans of it that are not of steps."""
    sums: defaultdict[_Key, _Sum] = defaultdict(_Sum)
    for ran, own in (each for lines in lanes for lane in lines for each in _own_times(lane)):
        total = sums[ran.key._replace(kernel="")]
        total.seconds += own / 1e12
        total.kernels[ran.key.kernel] += own
        total.counts[ran.key.kernel] += 1
    is_marked = bool(facts.layers)
    operations = [_operation(key, each, programs, facts) for key, each in sums.items()]
    operations.sort(key=lambda each: (-each.seconds, each.name))
    busy = [union([*((ran.begin, ran.last) for lane in lines for ran in lane if ran.fills), *apart]) for lines in lanes]
    left_out = sum(end - begin for begin, end in apart)
    every = [ran for lines in lanes for lane in lines for ran in lane]
    first, last = min((ran.begin for ran in every), default=0), max((ran.last for ran in every), default=0)
    if every and traced:
        first, last = min(first, 0), max(last, traced)
    return OpProfile(
        device=device,
        devices=len(lanes),
        lanes=sum(len(lines) for lines in lanes),
        seconds=(last - first - left_out) / 1e12 if every else 0.0,
        busy=sum(sum(end - begin for begin, end in spans) - left_out for spans in busy) / 1e12 / max(1, len(lanes)),
        total=sum(each.seconds for each in operations),
        steps=facts.steps,
        operations=tuple(operations[:MOST_OPERATIONS]),
        others=len(operations[MOST_OPERATIONS:]),
        grouped_by=LAYERS if is_marked else SCOPES,
        groups=_groups(operations),
        gaps=_gaps([_between(spans, first, last) for spans in busy]),
        peak_flops=facts.peak_flops,
        peak_source=facts.peak_source,
        peak_bytes=facts.peak_bytes,
        bytes_source=facts.bytes_source,
        notes=(*facts.notes, *_remarks(operations, has_programs=any(key.program in programs for key in sums))),
        trace=facts.path,
    )


def _operation(key: _Key, total: _Sum, programs: Mapping[int | str, Program], facts: TraceFacts) -> ProfiledOperation:
    cost, name, kind = _cost_of(key, programs), key.name, key.kind
    path = cost.operation if cost else key.name
    flops, size = (cost.flops, cost.bytes) if cost else (None, None)
    if key.kind:
        name = shown_name(key.name, facts.layers)
        if found := facts.cost_of(graph_name(key.name), key.kind):
            flops, size = found
    elif cost:
        kind = f"{cost.opcode} {cost.kind}".strip()
    kernel = total.kernels.most_common(1)[0][0]
    return ProfiledOperation(
        name=name,
        kind=kind or key.name,
        group=_group(path, facts.layers) if cost or key.kind else "",
        count=max(total.counts.values()),
        seconds=total.seconds,
        flops=flops,
        bytes=size,
        kernel=kernel if kernel != key.name else "",
    )


def _group(path: str, layers: Mapping[int, str]) -> str:
    """The layer of an operation, or the name scope that says what it is part of."""
    mark = innermost_mark(path)
    if mark is not None and mark in layers:
        return layers[mark]
    found = scopes(path)
    if not layers:
        return "/".join(found[:2])
    # Names of operations are scopes, too: of their parts, and of what TensorFlow makes of them.
    part = _SCOPE_NUMBER.sub("", found[0]) if found else ""
    return "" if part[:1].isupper() or part == "strided_slice" else part


def _groups(operations: Iterable[ProfiledOperation]) -> tuple[OperationGroup, ...]:
    seconds, flops = defaultdict[str, float](float), defaultdict[str, float](float)
    for each in operations:
        seconds[each.group] += each.seconds
        flops[each.group] += each.flops * each.count if each.flops else 0.0
    ordered = sorted(seconds.items(), key=lambda group: -group[1])
    return tuple(OperationGroup(name, time, flops[name]) for name, time in ordered)


def _between(spans: Spans, first: int, last: int) -> list[int]:
    """The lengths of the gaps between spans."""
    edges = [first, *(edge for span in spans for edge in span), last]
    return [end - begin for begin, end in zip(edges[::2], edges[1::2], strict=True) if end > begin]


def _gaps(lengths: Sequence[Sequence[int]]) -> tuple[Gap, ...]:
    """Gaps of all devices by length, in picoseconds."""
    found = sorted(each / 1e12 for device in lengths for each in device)
    limits = (0.0, *GAP_SECONDS, float("inf"))
    kinds = [[each for each in found if low < each <= high] for low, high in pairwise(limits)]
    return tuple(Gap(each[-1], len(each), sum(each)) for each in kinds if each)


def _remarks(operations: Sequence[ProfiledOperation], *, has_programs: bool) -> Iterator[str]:
    if any(each.kind.startswith("fusion") for each in operations):
        yield "A fusion of XLA counts for the layer of its last operation."
    total = sum(each.seconds for each in operations)
    unnamed = sum(each.seconds for each in operations if not each.group)
    if has_programs and total and unnamed > UNNAMED_SHARE * total:
        yield "Instructions of XLA without a name of the model belong to no layer."
