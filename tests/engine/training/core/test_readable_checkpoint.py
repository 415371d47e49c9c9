from pathlib import Path

import pytest
import tensorflow as tf

from accel_engine.errors import RunError
from accel_engine.run.directory.checkpoint_files import write_checksums
from accel_engine.training.core.readable_checkpoint import reading


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            tf.errors.NotFoundError(None, None, "Key a not found"),
            "the checkpoint of step 4 does not fit the model: Key",
        ),
        (
            tf.errors.InvalidArgumentError(None, None, "a has int8"),
            "the checkpoint of step 4 does not fit the model: a",
        ),
        (tf.errors.ResourceExhaustedError(None, None, "OOM"), "cannot restore the checkpoint of step 4: OOM"),
        (tf.errors.UnknownError(None, None, "Input/output error"), "cannot restore the checkpoint of step 4: Input/"),
    ],
)
def test_another_model_is_told_from_a_lack_of_memory_and_a_broken_disk(
    tmp_path: Path, error: Exception, words: str
) -> None:
    for suffix in ("index", "data-00000-of-00001"):
        (tmp_path / f"step-4.{suffix}").touch()
    write_checksums(tmp_path, 4)
    with pytest.raises(RunError, match=f"^{words}"), reading(tmp_path, 4):
        raise error
