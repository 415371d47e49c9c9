import os

import pytest

from accel_engine.process import environment


def test_the_user_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"TF_ENABLE_ONEDNN_OPTS": "0"})
    environment.prepare()
    assert os.environ["TF_ENABLE_ONEDNN_OPTS"] == "0"
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_keras_runs_on_tensorflow_whatever_the_user_prefers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"KERAS_BACKEND": "jax"})
    environment.prepare()
    assert os.environ["KERAS_BACKEND"] == "tensorflow"
