"""When runs of the queue are expected to start and to end."""

from pathlib import Path

from accel_engine.run_queue.decision import ActiveRun, FreeDevices, WaitingRun, decide
from accel_engine.run_queue.needs import RunNeeds
from accel_engine.run_queue.queue_entries import QueueEntry, QueueRequest, WaitReason
from accel_tui.run_list.queue_rows import QueueList, QueueRow
from accel_tui.run_list.queue_times import PlannedRun, planned_runs
from accel_tui.widgets.queue_timeline import _names

CPU, GPUS = RunNeeds(), RunNeeds("gpu", 1, ("gpu:0", "gpu:1"))


def row(
    run: str,
    seconds: float | None,
    *,
    on: tuple[str, ...] | None = None,
    need: RunNeeds | None = CPU,
    after: tuple[str, ...] = (),
    reason: WaitReason = WaitReason("waits"),  # noqa: B008 (it is frozen)
    is_held: bool = False,
) -> QueueRow:
    """A run that trains, if devices are given, or waits."""
    request = QueueRequest(after=after)
    is_started = on is not None
    entry = QueueEntry(
        run, Path(run), request, 0 if is_started else 1, is_held, is_started, on or (), reason.text, reason.others
    )
    return QueueRow(entry, None, seconds=seconds, need=need, after=after)


def times(*rows: QueueRow, at_once: int | None = None) -> dict[str, tuple[float | None, float | None]]:
    return {each.entry.run: (each.start, each.end) for each in planned_runs(QueueList(rows, at_once))}


def test_runs_on_the_cpu_follow_one_another() -> None:
    found = times(row("now", 60, on=()), row("next", 30), row("last", 5))
    assert found == {"now": (0, 60), "next": (60, 90), "last": (90, 95)}


def test_with_a_limit_several_train_at_once() -> None:
    found = times(row("now", 60, on=()), row("other", 20, on=()), row("next", 30), row("last", 5), at_once=2)
    assert found == {"now": (0, 60), "other": (0, 20), "next": (20, 50), "last": (50, 55)}


def test_each_gpu_takes_the_next_run_when_it_is_free() -> None:
    rows = [row("a", 60, on=("gpu:0",)), row("b", 20, on=("gpu:1",)), row("c", 10, need=GPUS), row("d", 9, need=GPUS)]
    found = planned_runs(QueueList(tuple(rows)))
    assert [(each.entry.run, each.devices, each.start) for each in found[2:]] == [
        ("c", ("gpu:1",), 20),
        ("d", ("gpu:1",), 30),
    ]


def test_a_run_after_another_one_waits_until_that_has_ended() -> None:
    found = times(row("now", 60, on=()), row("second", 10, after=("third",)), row("third", 20))
    assert found == {"now": (0, 60), "third": (60, 80), "second": (80, 90)}


def test_behind_an_unknown_end_nothing_has_a_start() -> None:
    found = times(row("now", None, on=()), row("next", 30))
    assert found == {"now": (0, None), "next": (None, None)}


def test_held_runs_and_unknown_needs_have_no_start() -> None:
    rows = (row("now", 60, on=()), row("held", 30, is_held=True), row("strange", 30, need=None), row("next", None))
    assert times(*rows) == {"now": (0, 60), "held": (None, None), "strange": (None, None), "next": (60, None)}


def test_an_accelerator_of_another_program_is_not_planned() -> None:
    need, kept = RunNeeds("gpu", 1, ("gpu:0",)), FreeDevices({"gpu:0": "is used by python, 3 GiB", "gpu:1": ""})
    reason = decide([WaitingRun("b", QueueRequest(), need)], [], kept).waits["b"]
    both = RunNeeds("gpu", 2, ("gpu:0", "gpu:1"))
    busy = decide([WaitingRun("c", QueueRequest(), both)], [ActiveRun("a", ("gpu:1",))], kept).waits["c"]
    assert (reason.others, busy.others) == (("gpu:0",), ("gpu:0",))
    rows = [
        row("a", 60, on=("gpu:1",)),
        row("b", 30, need=need, reason=reason),
        row("c", 20, need=both, reason=busy),
        row("d", 10, need=GPUS),
    ]
    assert times(*rows) == {"a": (0, 60), "d": (60, 70), "b": (None, None), "c": (None, None)}


def test_a_run_that_trains_longer_than_expected_ends_soon() -> None:
    assert times(row("now", 0.0, on=()), row("next", 30)) == {"now": (0, 1), "next": (1, 31)}


def test_runs_that_are_too_short_for_a_block_with_a_name_are_named_below() -> None:
    first, second = (PlannedRun(row(run, 3.0), ("cpu:0",), start, start + 3.0) for run, start in (("a", 0), ("b", 3)))
    last = PlannedRun(row("last", 3.0), ("cpu:0",), 57.0, 60.0)
    assert _names([(0, 1, first), (39, 40, last)], 40) == "└a 0:03" + " " * 23 + "last 0:03┘"
    assert _names([(0, 1, first), (1, 2, second)], 40) == "└a 0:03  and 1 more"
