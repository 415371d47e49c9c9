"""Where a sequence of operations is cut."""

import pytest

from accel_engine.training.core.rematerialization.division import Operation, Partition, choose_partition, saved_with


def chain(*sizes: int) -> list[Operation]:
    """Operations that each read the output of the one before."""
    return [Operation(frozenset({index}), {index + 1: size}, size) for index, size in enumerate(sizes)]


def residual(blocks: int) -> list[Operation]:
    """Blocks of three operations, whose last one also reads the block's input."""
    found = []
    for block in range(blocks):
        first = 3 * block
        found += [Operation(frozenset({first + step}), {first + step + 1: 1}, 1) for step in range(2)]
        found.append(Operation(frozenset({first, first + 2}), {first + 3: 1}, 1))
    return found


def test_a_long_chain_saves_twice_the_square_root() -> None:
    partition = choose_partition(chain(*[1] * 100))

    assert partition.saved == 19, "9 tensors between 10 parts of 10"
    assert len(partition.cuts) in (9, 10)


@pytest.mark.parametrize("operations", [[], chain(5), chain(5, 5), chain(0, 0, 0)])
def test_what_is_short_is_not_cut(operations: list[Operation]) -> None:
    assert choose_partition(operations) == Partition((), sum(each.saved for each in operations))


def test_residual_networks_are_cut_between_blocks() -> None:
    partition = choose_partition(residual(16))

    assert partition.cuts
    assert all(cut % 3 == 0 for cut in partition.cuts)
    assert partition.saved <= 2 * 48**0.5 + 1


def test_parts_are_equal_in_size_not_in_number_of_operations() -> None:
    partition = choose_partition(chain(*[16] * 4, *[1] * 64))

    first, *_, last = partition.cuts
    assert first <= 2
    assert last >= 4
    assert partition.saved == saved_with(chain(*[16] * 4, *[1] * 64), partition.cuts) < 128


def test_a_shortcut_over_all_is_saved_once() -> None:
    operations = chain(*[1] * 20)
    operations.append(Operation(frozenset({1, 20}), {21: 1}, 1))

    assert saved_with(operations, [5, 10, 15]) == 4 + 6, "the output of the first, those at the cuts, and the last part"
    assert choose_partition(operations).saved < 21
