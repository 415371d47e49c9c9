"""What starts, on which devices, and why the rest waits: a function without processes."""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_engine.run_queue.decision import ActiveRun, FreeDevices, WaitingRun, decide
from accel_engine.run_queue.needs import RunNeeds
from accel_engine.run_queue.queue_entries import QueueRequest

FREE = {"gpu:0": "", "gpu:1": ""}


def waits(run: str, gpus: int = 0, of: Sequence[str] = tuple(FREE), blocked: str = "", **asks: object) -> WaitingRun:
    need = RunNeeds("gpu", gpus, tuple(of)) if gpus else RunNeeds()
    return WaitingRun(run, QueueRequest(**asks), need, blocked)  # type: ignore[arg-type]


def test_the_cpu_trains_one_run_at_once_in_order() -> None:
    decision = decide([waits("a"), waits("b"), waits("c")], [], FreeDevices())

    assert decision.starts == {"a": ()}
    assert decision.reasons == dict.fromkeys("bc", "a trains; one at once on the CPU")


def test_a_run_that_a_user_has_started_counts() -> None:
    decision = decide([waits("a")], [ActiveRun("mine")], FreeDevices())

    assert not decision.starts
    assert decision.reasons["a"] == "mine trains; one at once on the CPU"


@pytest.mark.parametrize(("at_once", "started"), [(1, "a"), (2, "ab"), (3, "abc"), (9, "abc")])
def test_a_limit_replaces_that_of_the_cpu(at_once: int, started: str) -> None:
    decision = decide([waits(each) for each in "abc"], [], FreeDevices(at_once=at_once))

    assert list(decision.starts) == list(started)


def test_a_limit_counts_runs_on_accelerators_and_names_some() -> None:
    active = [ActiveRun(f"run{index}", ("gpu:0",)) for index in range(5)]

    decision = decide([waits("a", 1)], active, FreeDevices(FREE, at_once=5))

    assert decision.reasons == {"a": "at most 5 runs at once: run0, run1, run2 and 2 more train"}


def test_each_accelerator_gets_a_run() -> None:
    decision = decide([waits(each, 1) for each in "abc"], [], FreeDevices(FREE))

    assert decision.starts == {"a": ("gpu:0",), "b": ("gpu:1",)}
    assert decision.reasons == {"c": "needs 1 free of 2: gpu:0 run a, gpu:1 run b"}


def test_runs_on_the_cpu_and_on_accelerators_do_not_wait_for_each_other() -> None:
    decision = decide([waits("a", 1), waits("b"), waits("c", 1), waits("d")], [], FreeDevices(FREE))

    assert decision.starts == {"a": ("gpu:0",), "b": (), "c": ("gpu:1",)}


def test_what_other_people_use_is_not_free() -> None:
    machine = FreeDevices({"gpu:0": "has 30.0 GiB of 80.0 GiB in use (python)", "gpu:1": ""})

    decision = decide([waits("a", 1), waits("b", 2)], [], machine)

    assert decision.starts == {"a": ("gpu:1",)}
    assert decision.reasons == {"b": "needs 2 free of 2: gpu:0 has 30.0 GiB of 80.0 GiB in use (python), gpu:1 run a"}


def test_a_run_whose_devices_are_not_known_yet_may_take_any() -> None:
    decision = decide([waits("a", 1)], [ActiveRun("mine", is_starting=True)], FreeDevices(FREE))

    assert decision.reasons == {"a": "needs 1 free of 2: gpu:0 run mine, gpu:1 run mine"}


def test_such_a_run_is_not_one_on_the_cpu_of_a_machine_with_accelerators() -> None:
    assert decide([waits("a")], [ActiveRun("mine", is_starting=True)], FreeDevices(FREE)).starts == {"a": ()}
    assert not decide([waits("a")], [ActiveRun("mine", is_starting=True)], FreeDevices()).starts


def test_a_run_gets_only_devices_that_it_may_use() -> None:
    decision = decide([waits("a", 1, ["gpu:1"]), waits("b", 1, ["gpu:1"])], [], FreeDevices(FREE))

    assert decision.starts == {"a": ("gpu:1",)}
    assert decision.reasons == {"b": "needs gpu:1 free: gpu:1 run a"}


def test_runs_of_the_same_priority_overtake_one_that_needs_more() -> None:
    decision = decide([waits("big", 2), waits("small", 1)], [ActiveRun("mine", ("gpu:0",))], FreeDevices(FREE))

    assert decision.starts == {"small": ("gpu:1",)}


def test_a_higher_priority_keeps_what_is_free() -> None:
    candidates = [waits("big", 2, priority=1), waits("small", 1)]

    decision = decide(candidates, [ActiveRun("mine", ("gpu:0",))], FreeDevices(FREE))

    assert not decision.starts
    assert decision.reasons["small"] == "needs 1 free of 2: gpu:0 run mine, gpu:1 is kept for a higher priority"


def test_what_is_kept_does_not_keep_equals_from_starting() -> None:
    candidates = [waits("big", 2, priority=1), waits("equal", 1, priority=1), waits("small", 1)]

    decision = decide(candidates, [ActiveRun("mine", ("gpu:0",))], FreeDevices(FREE))

    assert decision.starts == {"equal": ("gpu:1",)}


def test_a_group_trains_at_most_as_many_as_it_says() -> None:
    group = {"group": "search lr", "at_once": 2}
    active = [ActiveRun("x", group="search lr"), ActiveRun("y", group="other")]

    decision = decide([waits("a", **group), waits("b", **group), waits("c")], active, FreeDevices(at_once=9))

    assert decision.starts == {"a": (), "c": ()}
    assert decision.reasons == {"b": "2 of search lr train already, the most at once"}


def test_a_group_without_a_limit_has_none() -> None:
    candidates = [waits(each, group="search") for each in "abc"]

    assert len(decide(candidates, [], FreeDevices(at_once=9)).starts) == 3


def test_a_blocked_run_is_passed_over_and_keeps_nothing() -> None:
    decision = decide([waits("a", 2, blocked="held by me", priority=5), waits("b", 1)], [], FreeDevices(FREE))

    assert decision.starts == {"b": ("gpu:0",)}
    assert decision.reasons == {"a": "held by me"}


def test_memory_of_the_host_is_counted_for_all_that_start() -> None:
    need = RunNeeds(memory=600_000_000)
    candidates = [WaitingRun(each, QueueRequest(), need) for each in "abc"]

    decision = decide(candidates, [], FreeDevices(memory=1_300_000_000, at_once=9))

    assert list(decision.starts) == ["a", "b"]
    assert decision.reasons == {"c": "needs 572 MiB of memory, and 95.4 MiB are available"}


def test_a_tpu_trains_one_run() -> None:
    chips = ("tpu:0", "tpu:1")
    need = RunNeeds("tpu", 2, chips)
    machine = FreeDevices(dict.fromkeys(chips, ""))

    decision = decide([WaitingRun(each, QueueRequest(), need) for each in "ab"], [], machine)

    assert decision.starts == {"a": chips}
    assert decision.reasons["b"] == "needs 2 free of 2: tpu:0 run a, tpu:1 run a"


CANDIDATES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-2, 2), st.sampled_from(["", "g", "h"]), st.integers(0, 2), st.booleans()),
    max_size=8,
)
ACTIVE = st.lists(st.tuples(st.sets(st.integers(0, 3)), st.sampled_from(["", "g"]), st.booleans()), max_size=3)


@given(CANDIDATES, ACTIVE, st.sets(st.integers(0, 3)), st.one_of(st.none(), st.integers(1, 4)))
def test_no_limit_is_ever_exceeded(
    asked: list[tuple[int, int, str, int, bool]],
    live: list[tuple[set[int], str, bool]],
    used: set[int],
    at_once: int | None,
) -> None:
    gpus = tuple(f"gpu:{index}" for index in range(4))
    machine = FreeDevices({gpu: "is 50% busy" * (index in used) for index, gpu in enumerate(gpus)}, at_once=at_once)
    active = [
        ActiveRun(f"live{index}", tuple(gpus[each] for each in sorted(devices)), group, is_starting)
        for index, (devices, group, is_starting) in enumerate(live)
    ]
    ordered = sorted(enumerate(asked), key=lambda each: -each[1][1])
    candidates = [
        waits(f"run{index}", count, gpus, "held" * held, priority=priority, group=group, at_once=most)
        for index, (count, priority, group, most, held) in ordered
    ]

    decision = decide(candidates, active, machine)

    assert decision.starts.keys() | decision.reasons.keys() == {each.run for each in candidates}
    assert not decision.starts.keys() & decision.reasons.keys()
    assert all(decision.reasons.values())
    taken = [device for devices in decision.starts.values() for device in devices]
    assert len(taken) == len(set(taken))
    in_use = {device for run in active for device in run.devices} | {gpus[index] for index in used}
    assert not in_use & set(taken)
    if any(run.is_starting for run in active):
        assert not taken
    if at_once is not None:
        assert len(active) + len(decision.starts) <= max(at_once, len(active))
    for candidate, (group, most) in product(candidates, (("g", 1), ("g", 2), ("h", 1), ("h", 2))):
        if candidate.run in decision.starts and (candidate.request.group, candidate.request.at_once) == (group, most):
            before = candidates[: candidates.index(candidate)]
            earlier = [each for each in before if each.run in decision.starts and each.request.group == group]
            assert len(earlier) + sum(run.group == group for run in active) < most
        if candidate.run in decision.starts:
            assert len(decision.starts[candidate.run]) == candidate.need.count
            assert not candidate.blocked
