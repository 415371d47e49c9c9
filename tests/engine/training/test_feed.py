import numpy as np

from accel_engine.training.feed import epoch_order


def test_an_epoch_takes_every_example_at_most_once() -> None:
    order = epoch_order(seed=3, epoch=0, examples=100, steps=6, replicas=2, batch=8)

    assert order.shape == (6, 2, 8)
    assert len(set(order.ravel().tolist())) == 96


def test_epochs_differ_and_the_seed_decides_them() -> None:
    first = epoch_order(3, 0, 100, 6, 1, 16)

    assert not np.array_equal(first, epoch_order(3, 1, 100, 6, 1, 16))
    assert not np.array_equal(first, epoch_order(4, 0, 100, 6, 1, 16))
    np.testing.assert_array_equal(first, epoch_order(3, 0, 100, 6, 1, 16))


def test_an_epoch_longer_than_the_data_goes_over_it_again() -> None:
    order = epoch_order(0, 0, examples=10, steps=5, replicas=1, batch=5)

    for turn in (order[0:2], order[2:4]):
        assert sorted(turn.ravel()) == list(range(10))


def test_replicas_share_the_batches_of_one_device() -> None:
    alone = epoch_order(0, 0, 100, 6, 1, 16)
    shared = epoch_order(0, 0, 100, 6, 2, 8)

    np.testing.assert_array_equal(alone.reshape(6, -1), shared.reshape(6, -1))
