import os
import struct
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.data.folders.headers import HEADERS_READ
from accel_engine.data.folders.wav_header import read_wav_header
from accel_engine.errors import DataError

RATE = 800


def save(path: Path, samples: np.ndarray, rate: int = RATE, width: int = 2) -> None:
    """Write samples from -1 to 1, ``[samples]`` or ``[samples, channels]``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((1 if samples.ndim == 1 else samples.shape[1], width, rate, 0, "NONE", ""))
        file.writeframes((samples * 32767).astype("<i2").tobytes()[: samples.size * 2] * (width // 2))


def tone(hertz: float, samples: int = 400) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(samples) / RATE) / 2


@pytest.fixture
def tones(tmp_path: Path) -> Path:
    for name, hertz in (("high", 80), ("low", 20)):
        for index in range(5):
            save(tmp_path / "tones" / name / f"{index}.wav", tone(hertz + index))
    return tmp_path / "tones"


def load(path: Path, **options: Any) -> dataset_module.Dataset:
    return data.load(str(path), DataOptions(**options))


def test_sounds_by_class(tones: Path) -> None:
    dataset = load(tones, split="none")
    assert (dataset.kind, dataset.task, dataset.sample_rate) == ("audio", "classification", RATE)
    assert dataset.class_names == ("high", "low")
    assert dataset.train.inputs.dtype == np.float32
    for row, hertz in enumerate([*range(80, 85), *range(20, 25)]):
        np.testing.assert_allclose(dataset.train.inputs[row, :, 0], tone(hertz), atol=1e-4)
        assert dataset.train.targets[row] == int(hertz < 50)
    entry = data.survey(data.find(str(tones)), DataOptions())
    assert (entry.kind, entry.shape, entry.spec) == ("audio", (400, 1), dataset.spec)
    assert entry.columns[0].detail == "400 samples, 0.5 s at 800 samples per second"
    assert entry.class_counts == (5, 5)


def test_sounds_are_padded_or_cut_and_mixed(tones: Path) -> None:
    both = np.stack([tone(10), np.zeros(400)], axis=1)
    save(tones / "low" / "0.wav", both)
    save(tones / "low" / "1.wav", tone(10, 100))
    save(tones / "low" / "2.wav", tone(10, 500))
    dataset = load(tones, split="none")
    low = dataset.train.inputs[dataset.train.targets == 1][..., 0]
    np.testing.assert_allclose(low[0], tone(10) / 2, atol=1e-4)
    np.testing.assert_allclose(low[1], [*tone(10, 100), *np.zeros(300)], atol=1e-4)
    np.testing.assert_allclose(low[2], tone(10), atol=1e-4)
    assert dataset.notes[-2:] == (
        "sounds have several lengths: padded with silence or cut to 400 samples, 0.5 s, the most common length "
        "(change it with window)",
        "channels are mixed into one",
    )
    assert load(tones, window=80).shape == (80, 1)


def test_other_rates_and_formats_are_named(tones: Path) -> None:
    other = tones / "low" / "1.wav"
    save(other, tone(10), rate=2 * RATE)
    reads = (load, lambda path: data.survey(data.find(str(path)), DataOptions()))
    for read in reads:
        with pytest.raises(DataError, match=f"{other}: it has 1600 samples per second and others 800; convert it"):
            read(tones)
    save(other, tone(10), width=4)
    for read in reads:
        with pytest.raises(DataError, match=f"{other}: it has 32-bit PCM, but only 16-bit PCM can be read"):
            read(tones)
    save(other, tone(10))
    other.write_bytes(other.read_bytes()[:20] + struct.pack("<H", 3) + other.read_bytes()[22:])
    with pytest.raises(DataError, match="it has 16-bit floating point"):
        load(tones)
    other.write_bytes(b"RIFF and so on")
    with pytest.raises(DataError, match=f"cannot read the sound {other}: not a valid WAV file"):
        load(tones, invalid_examples="fail")
    dataset = load(tones, invalid_examples="skip", split="none")
    assert len(dataset.train) == 9
    assert dataset.warnings[-1] == "skipped 1 of 10 examples that cannot be read: low/1.wav"


def test_a_rate_that_no_header_showed_is_found_while_reading(tones: Path) -> None:
    for index in range(200):
        save(tones / "low" / f"more{index}.wav", tone(10, 10), rate=RATE)
    sampled = np.linspace(0, 209, HEADERS_READ).astype(int)
    row = next(row for row in range(5, 210) if row not in sampled)
    other = sorted((tones / "low").iterdir())[row - 5]
    save(other, tone(10), rate=2 * RATE)
    data.survey(data.find(str(tones)), DataOptions(split="none"))
    with pytest.raises(DataError, match=f"{other}: it has 1600 samples per second and others 800"):
        load(tones, split="none")


def test_header_of_an_extensible_file(tones: Path, tmp_path: Path) -> None:
    content = (tones / "low" / "0.wav").read_bytes()
    extension = struct.pack("<HHIH", 22, 16, 4, 1) + b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
    chunk = struct.pack("<4sIH", b"fmt ", 40, 0xFFFE) + content[22:36] + extension
    path = tmp_path / "extensible.wav"
    path.write_bytes(content[:12] + b"LIST\x03\0\0\0abc\0" + chunk + content[36:])
    assert read_wav_header(path) == (RATE, 1, 400)


def test_a_header_that_promises_more_samples_than_there_are(tones: Path) -> None:
    """It would set the length of all examples, to gigabytes each."""
    for path in (tones / "low").iterdir():
        content = bytearray(path.read_bytes())
        at = content.index(b"data") + 4
        content[at : at + 4] = b"\xf0\xff\xff\xff"
        path.write_bytes(content)
    entry = data.survey(data.find(str(tones)), DataOptions())
    assert entry.shape == (400, 1)
    assert (
        "5 of 10 files seem damaged; those that cannot be read will be left out: low/0.wav, low/1.wav, low/2.wav, …"
        in entry.notes
    )
    dataset = load(tones, split="none")
    assert (len(dataset.train), dataset.shape) == (5, (400, 1))
    with pytest.raises(DataError, match=r"0.wav: it ends too early, with 800 of 4,294,967,280 bytes of samples"):
        load(tones, invalid_examples="fail")


def test_a_pipe_is_skipped_and_named(tones: Path) -> None:
    (tones / "low" / "1.wav").unlink()
    os.mkfifo(tones / "low" / "1.wav")
    assert load(tones, split="none").warnings[-1] == "skipped 1 of 10 examples that cannot be read: low/1.wav"
