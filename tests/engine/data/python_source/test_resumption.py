"""A stream that is read from a position gives what an uninterrupted run gives there."""

import os
import random
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Split, Stream
from accel_engine.data.structure import flatten
from accel_engine.errors import DataError

PASSES = 4

START = """
import random
import keras, numpy as np, tensorflow as tf
x = np.arange(22)
def ds(): return tf.data.Dataset.range(22)
def halves(v): return tf.data.Dataset.from_tensors(v).repeat(2)
class Shuffled(keras.utils.PyDataset):
    def __init__(self, **more):
        super().__init__(**more)
        self.order = np.arange(22)
        self.begun = 0
    def __len__(self): return 6
    def on_epoch_begin(self): self.begun += 1
    def on_epoch_end(self): np.random.shuffle(self.order)
    def __getitem__(self, index):
        rows = self.order[4 * index : 4 * index + 4]
        return rows + 100 * self.begun + (0 if self.workers > 1 else np.random.random(len(rows)))
def noisy():
    order = np.random.permutation(22)
    for first in range(0, 22, 4):
        yield order[first : first + 4] + np.random.random() + random.random()
own = np.random.default_rng(3)
def with_own_seed():
    rng = np.random.default_rng(own.integers(9))
    for _ in range(6): yield rng.random(4)
def generated():
    return tf.data.Dataset.from_generator(with_own_seed, output_signature=tf.TensorSpec((None,)))
def with_own_state():
    for _ in range(own.integers(3, 7)):
        yield own.random(4)
class Again:
    def __iter__(self):
        self.count = getattr(self, "count", 0) + 1
        return iter([np.full(4, self.count + v) for v in np.random.random(5)])
class Counter(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.seed = keras.random.SeedGenerator(4)
    def call(self, v): return tf.cast(v, tf.float32) + keras.random.uniform((), seed=self.seed)
class Endless(keras.utils.PyDataset):
    num_batches = None
    def __getitem__(self, index): return np.full(4, index + np.random.random())
"""

SOURCES = {
    "in order": "ds().batch(4)",
    "not batched": "ds().shuffle(22)",
    "shuffled": "ds().shuffle(22).batch(4).prefetch(2)",
    "shuffled in part": "ds().shuffle(5).map(lambda v: v + 1, num_parallel_calls=2).batch(4).prefetch(2)",
    "shuffled twice": "ds().shuffle(22).interleave(halves, 2).shuffle(9).batch(4)",
    "shuffled in files": "ds().shuffle(22).interleave(lambda v: tf.data.Dataset.range(v, v + 3).shuffle(3)).batch(4)",
    "cached": "ds().cache().shuffle(22).batch(4)",
    "repeated": "ds().shuffle(22).map(lambda v: v + 1).repeat(2).batch(4)",
    "random": "ds().shuffle(22).map(lambda v: tf.random.uniform(()) + tf.cast(v, tf.float32)).batch(4)",
    "random layer": "ds().shuffle(22).map(Counter()).batch(4)",
    "tf generator": "generated().unbatch().shuffle(9)",
    "generator": "noisy()",
    "generator function": "noisy",
    "generator with its own state": "with_own_state()",
    "iterable": "Again()",
    "PyDataset": "Shuffled()",
    "PyDataset with threads": "Shuffled(workers=3)",
}


@pytest.fixture
def stream(tmp_path: Path):
    def stream(returned: str, part: str = "train") -> Stream:
        (tmp_path / "mine.py").write_text(f"{START}\ndef load(): return {returned}\n")
        dataset = data.load(f"{tmp_path / 'mine.py'}:load", DataOptions(batch_size=4, seed=5))
        found = getattr(dataset, part)
        assert not isinstance(found, Split)
        assert found is not None
        return found

    return stream


def values(batches: Any) -> list[list[float]]:
    return [np.asarray(flatten(batch)[0]).tolist() for batch in batches]


@pytest.mark.share(4)
@pytest.mark.parametrize("name", SOURCES)
def test_any_position_gives_what_an_uninterrupted_run_gives(stream, name: str) -> None:
    uninterrupted = stream(SOURCES[name])
    passes = [values(uninterrupted.read(epoch, 0)) for epoch in range(PASSES)]
    assert all(len(batches) > 2 for batches in passes)
    if name != "in order":
        assert passes[0] != passes[1]
    for epoch, position in ((2, 2), (0, 1), (1, 0)):
        random.seed(9)
        np.random.seed(9)  # what others draw has no effect
        resumed = stream(SOURCES[name])
        rest = resumed.read(epoch, position)
        assert values(rest) == passes[epoch][position:]
        assert values(resumed.read(epoch + 1, 0)) == passes[epoch + 1]
        assert values(resumed.read(epoch + 1, 1)) == passes[epoch + 1][1:]  # what was read ahead was not consumed
        assert values(resumed.read(0, 2)) == passes[0][2:]
        assert values(resumed.read(1, 0)) == passes[1]


def test_a_new_process_gives_the_same(stream, tmp_path: Path) -> None:
    names = ("shuffled", "shuffled twice", "generator", "PyDataset")
    expected = []
    for name in names:
        uninterrupted = stream(SOURCES[name])
        passes = [values(uninterrupted.read(epoch, 0)) for epoch in range(3)]
        expected.append(str(passes[2][3:]))
    loaders = "".join(f"def load{number}(): return {SOURCES[name]}\n" for number, name in enumerate(names))
    (tmp_path / "mine.py").write_text(f"{START}\n{loaders}")
    script = f"""
import keras, numpy as np
from accel_engine import data
from accel_engine.data.data_options import DataOptions
keras.utils.set_random_seed(5)
keras.Sequential([keras.layers.Dense(3)]).build((None, 2))
for number in range({len(names)}):
    stream = data.load(f"{tmp_path}/mine.py:load{{number}}", DataOptions(batch_size=4, seed=5)).train
    print([np.asarray(batch.inputs).tolist() for batch in stream.read(2, 3)])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": "77"},
    )  # fmt: skip
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize(
    "endless", ["ds().shuffle(22).repeat().batch(4)", "Endless()", "tf.data.Dataset.random(3).batch(4).shuffle(4)"]
)
def test_a_stream_that_never_ends(stream, endless: str) -> None:
    one = stream(endless)
    assert one.batches is None
    batches = one.read(0, 0)
    whole = values(next(batches) for _ in range(20))
    again = stream(endless).read(0, 13)
    assert values(next(again) for _ in range(7)) == whole[13:]


def test_validation_gives_the_same_examples_each_time(stream) -> None:
    for returned in ("ds().shuffle(22).batch(4)", "noisy()", "Shuffled()", "Again()"):
        validation = stream(
            f"(ds().batch(4), {returned})" if "ds" in returned else f"(noisy(), {returned})", "validation"
        )
        rounds = [sorted(chain(*values(validation.read(0, 0)))) for _ in range(3)]
        assert len(rounds[0]) >= 20
        if returned != "Again()":
            assert rounds[0] == rounds[1] == rounds[2]


def test_reading_two_streams_in_turn_changes_neither(stream) -> None:
    alone = values(stream("noisy()").read(0, 0))
    both, other = stream("(noisy(), noisy())"), stream("noisy()")
    pairs = list(zip(both.read(0, 0), other.read(0, 0), strict=True))
    assert values(one for one, _ in pairs) == values(two for _, two in pairs) == alone


def test_the_random_numbers_of_others_stay_as_they_are(stream) -> None:
    one = stream("noisy()").read(0, 0)
    random.seed(4)
    np.random.seed(4)
    expected = random.random(), np.random.random()
    random.seed(4)
    np.random.seed(4)
    next(one)
    assert (random.random(), np.random.random()) == expected


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("failing()", r"failed at batch 4 of pass 1 in mine.py, line \d+: ZeroDivisionError"),
        ("ds().map(lambda v: 10 // (v - 9)).batch(4)", "failed at batch 3 of pass 1: InvalidArgumentError"),
        (
            "ds().map(lambda v: tf.ensure_shape(tf.py_function(check, [v], tf.int64), ())).batch(4)",
            r"batch 3 of pass 1 in mine.py, line \d+: ",
        ),
        ("growing()", "batch 4 of pass 1 has inputs of float32 5 in each example, and the first batches had float32 2"),
        ("changing()", "batch 4 of pass 1 has other arrays than the first one"),
    ],
)
def test_errors_say_where(stream, returned: str, words: str) -> None:
    more = """
def failing():
    for v in (1, 1, 1, 0, 1): yield np.full(4, 1 // v)
def check(v):
    if v == 9: raise RuntimeError("nine")
    return v
def growing():
    for v in (2, 2, 2, 5): yield np.zeros((4, v), "float32")
def changing():
    for v in (2, 2, 2, 5): yield (x[:4],) if v == 2 else (x[:4], x[:4])
"""
    with pytest.raises(DataError, match=words):
        list(_with(stream, more, returned).read(0, 0))


def _with(stream: Any, more: str, returned: str) -> Stream:
    global START
    before = START
    START += more
    try:
        return stream(returned)
    finally:
        START = before


def test_batches_of_different_lengths_that_are_seen_at_once_are_of_any_length(stream) -> None:
    made = _with(stream, "def padded():\n    for v in (2, 3, 5): yield np.zeros((4, v))\n", "padded()")
    assert str(made.spec.inputs) == "float32 ?"
    assert [batch.inputs.shape[1] for batch in made.read(0, 0)] == [2, 3, 5]


def test_pytorch_data_loader(stream) -> None:
    torch = pytest.importorskip("torch")
    before = """
import torch
class Noisy(torch.utils.data.Dataset):
    def __len__(self): return 22
    def __getitem__(self, row): return torch.tensor([float(row)]) + torch.rand(1) + np.random.random(), row % 2
def loader(**more): return torch.utils.data.DataLoader(Noisy(), 4, **more)
"""
    for more in ("shuffle=True", "shuffle=True, generator=torch.Generator()", "shuffle=True, num_workers=2"):
        one = _with(stream, before, f"loader({more})")
        assert (one.batches, one.batch_size) == (6, 4)
        passes = [values(one.read(epoch, 0)) for epoch in range(3)]
        torch.manual_seed(1)
        assert passes[0] != passes[1]
        assert values(_with(stream, before, f"loader({more})").read(2, 3)) == passes[2][3:]
