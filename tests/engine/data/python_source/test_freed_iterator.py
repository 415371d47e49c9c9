"""The iterators of datasets, whose end must not hold up the thread that reads them."""

import threading
import weakref

import tensorflow as tf

from accel_engine.data.python_source.tf_data_stream import BatchStacks, FreedIterator
from garbage import freed
from waiting import eventually


class Iterator:
    """Notes the thread in which it is freed."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        weakref.finalize(self, lambda threads: threads.append(threading.get_ident()), self.threads)

    def __next__(self) -> int:
        return 7


async def test_an_iterator_is_freed_in_another_thread() -> None:
    inner = Iterator()
    threads, iterator = inner.threads, FreedIterator(inner)
    del inner
    assert next(iterator) == 7
    del iterator
    await eventually(lambda: threads, lambda: "the iterator's end")
    assert threads != [threading.get_ident()]


async def test_stacks_do_not_keep_it() -> None:
    with freed():
        dataset = tf.data.Dataset.range(10).batch(2)
        iterator = FreedIterator(iter(dataset))
        inner = weakref.ref(iterator.inner)
        assert sum(count for _, count, _ in BatchStacks(dataset.element_spec).read(iterator, lambda: 4)) == 5
        del iterator
    await eventually(lambda: inner() is None, lambda: "the iterator's end")
