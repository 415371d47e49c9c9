"""A language model continues a prompt as its probabilities and the seed say."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.data.characters import BYTES, texts_of_tokens, tokens_of_text
from accel_engine.errors import AccelError, DataError
from accel_engine.plan import Plan
from accel_engine.requests.write_text import WritingOptions, WritingRequest, WrittenPart, WrittenText
from accel_engine.run.directory.run_paths import trained_model
from accel_engine.trained.prediction.writing import continue_text

from ...training.conftest import Gym

OPTIONS = WritingOptions(prompt="the ", tokens=6, temperature=0.0)


SOURCE = """
import keras
from keras import layers

def build(vocabulary):
    count = len(vocabulary)
    return keras.Sequential([keras.Input((8,), dtype="int32"), layers.Embedding(count, 8),
                             layers.Conv1D(16, 3, padding="causal"), layers.Dense(count, activation="softmax")])
"""


def written(directory: Path, **changes: Any) -> tuple[WrittenText, list[str]]:
    parts: list[object] = []
    request = WritingRequest(directory, replace(OPTIONS, **changes))
    result = continue_text(request, parts.append)
    return result, [part.text for part in parts if isinstance(part, WrittenPart)]


def test_a_model_continues_a_prompt_without_its_text(gym: Gym, tmp_path: Path) -> None:
    story = tmp_path / "story.txt"
    story.write_text("the cat sat. the dog ran. " * 40)
    source = tmp_path / "own.py"
    source.write_text(SOURCE)
    plan = Plan(model=f"{source}:build", data=str(story), window=8, epochs=1, batch_size=20)
    directory = gym.train(plan).directory
    story.unlink()
    reply, parts = written(directory)
    assert (len(parts), "".join(parts), reply.tokens) == (6, reply.text, 6)
    file = trained_model(directory)
    assert file is not None
    model: Any = keras.models.load_model(file)
    characters = list(dict.fromkeys("the cat sat. the dog ran. "))
    vocabulary = "".join(sorted(characters))
    tokens = [vocabulary.index(each) for each in "the "]
    for _ in range(6):
        given = tokens[-8:]
        outputs = model(np.array([given + [0] * (8 - len(given))]))[0, len(given) - 1].numpy()
        tokens.append(int(outputs.argmax()))
    assert reply.text == "".join(vocabulary[token] for token in tokens[4:])
    by_seed = [written(directory, temperature=1.0, seed=seed, tokens=20)[0].text for seed in (1, 1, 2)]
    assert by_seed[0] == by_seed[1] != by_seed[2]
    with pytest.raises(DataError, match="'Z' of the prompt is not in the vocabulary"):
        written(directory, prompt="Zoo")


def test_a_model_of_another_task_writes_nothing(gym: Gym) -> None:
    directory = gym.train_once(Plan(model="mlp", epochs=1, batch_size=100, last_batch="drop")).directory
    with pytest.raises(AccelError, match="writes no text: its task is classification"):
        written(directory)


def test_texts_become_bytes_characters_or_words() -> None:
    assert tokens_of_text("é", BYTES) == [0xC3, 0xA9]
    assert tokens_of_text("ba", ("a", "b", " ")) == [1, 0]
    assert tokens_of_text("no such  cat", ("[UNK]", "cat", "no")) == [2, 0, 1]
    with pytest.raises(DataError, match="did you mean cat"):
        tokens_of_text("caat", ("cat", "dog"))
    for empty, known in (("", BYTES), ("  ", ("cat", "dog"))):
        with pytest.raises(DataError, match=r"the prompt (is empty|has no words)"):
            tokens_of_text(empty, known)


def test_a_character_of_several_bytes_comes_whole() -> None:
    assert list(texts_of_tokens([0x61, 0xC3, 0xA9, 0xC3], BYTES)) == ["a", "é", "\ufffd"]
    assert list(texts_of_tokens([1, 0], ("cat", "dog"))) == [" dog", " cat"]
