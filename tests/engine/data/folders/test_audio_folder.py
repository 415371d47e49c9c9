import os
import struct
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from accel_engine import data
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.data.folders.audio_folder import SoundForm
from accel_engine.data.folders.sound_files import read_sound, resampled, sound_header
from accel_engine.errors import DataError, PlanError

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


def test_sounds_are_padded_cut_and_mixed(tones: Path) -> None:
    both = np.stack([tone(10), np.zeros(400)], axis=1)
    save(tones / "low" / "0.wav", both)
    save(tones / "low" / "1.wav", tone(10, 100))
    save(tones / "low" / "2.wav", tone(10, 500))
    dataset = load(tones, split="none", window=400)
    low = dataset.train.inputs[dataset.train.targets == 1][..., 0]
    np.testing.assert_allclose(low[0], tone(10) / 2, atol=1e-4)
    np.testing.assert_allclose(low[1], [*tone(10, 100), *np.zeros(300)], atol=1e-4)
    np.testing.assert_allclose(low[2], tone(10), atol=1e-4)
    changes = [
        "1 of 10 sounds mixed: their channels into one",
        "1 of 10 sounds padded: with silence to 400 samples, 0.5 s",
        "1 of 10 sounds cut: to their loudest 400 samples, 0.5 s, without 2.6% of all sound",
    ]
    assert list(map(str, dataset.changes)) == changes
    assert list(map(str, data.survey(data.find(str(tones)), DataOptions(window=400)).changes)) == changes
    assert load(tones, window=80).shape == (80, 1)
    for window in (0, 1 << 40):
        with pytest.raises(PlanError, match="must be a number of samples"):
            load(tones, window=window)


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg", "mp3"])
def test_a_long_sound_is_cut_to_its_loudest_part(tones: Path, kind: str) -> None:
    rate = 8000
    for folder in ("high", "low"):
        for path in (tones / folder).iterdir():
            path.unlink()
        sound = np.random.default_rng(0).normal(0, 0.001, 20 * rate)
        begins = 12 * rate
        sound[begins : begins + rate] += np.sin(2 * np.pi * 500 * np.arange(rate) / rate) / 2
        soundfile.write(tones / folder / f"a.{kind}", sound, rate)
        for name in "bc":  # most sounds are short
            soundfile.write(tones / folder / f"{name}.wav", np.zeros(rate // 4), rate)
    found = load(tones, split="none", window=rate).train.inputs[0, :, 0]
    assert float(np.square(found).mean()) > 0.8 * 0.125
    whole = load(tones, split="none", window=20 * rate).train.inputs[0, :, 0]
    place = int(np.argmax(np.abs(whole) > 0.2))
    assert abs(place - begins) < rate // 4
    assert load(tones, split="none", window=rate // 2).train.inputs[0].std() > 0.3


def test_long_sounds_are_divided_into_windows_but_not_between_splits(tones: Path) -> None:
    """A window each would leave out most of a few long recordings."""
    save(tones / "low" / "0.wav", tone(10, 100))
    save(tones / "low" / "1.wav", tone(10, 350))
    options = DataOptions(window=150, split="stratified", validation_split=0.2)
    entry, dataset = data.survey(data.find(str(tones)), options), data.load(str(tones), options)
    changes = [
        "1 of 10 sounds padded: with silence to 150 samples, 0.188 s",
        "9 of 10 sounds divided: into 27 windows of 150 samples, 0.188 s, an example each; no sound is in two splits",
    ]
    assert list(map(str, dataset.changes)) == list(map(str, entry.changes)) == changes
    assert isinstance(dataset.validation, dataset_module.Split)
    assert len(dataset.train) + len(dataset.validation) == 28 == entry.examples + entry.validation_examples
    assert entry.class_counts == (15, 13)
    every = load(tones, split="none", window=150).train.inputs
    whole = tone(80)
    for row, first in enumerate((0, 150, 250)):  # the last one ends with the sound
        np.testing.assert_allclose(every[row, :, 0], whole[first : first + 150], atol=1e-4)
    validated = {window.tobytes() for window in dataset.validation.inputs}
    assert not validated & {window.tobytes() for window in dataset.train.inputs}
    assert len(validated) == 6


def test_windows_of_other_sample_rates(tones: Path) -> None:
    save(tones / "low" / "0.wav", np.repeat(tone(10), 2), 2 * RATE)
    found = load(tones, split="none", window=200).train.inputs[10:12, :, 0].ravel()
    np.testing.assert_allclose(found[20:380], tone(10)[20:380], atol=0.1)


def test_the_length_is_that_of_the_longest_but_one_in_a_hundred(tones: Path) -> None:
    """Their most common length would lose a third of spoken words."""
    for index in range(188):
        save(tones / "low" / f"{index:03}.wav", tone(10, 100 + index))
    assert load(tones, split="none").shape == (400, 1)
    save(tones / "low" / "long0.wav", tone(10, 700))
    save(tones / "low" / "long1.wav", tone(10, 9000))
    dataset, entry = load(tones, split="none"), data.survey(data.find(str(tones)), DataOptions())
    assert dataset.shape == entry.shape == (400, 1)
    assert str(dataset.changes[-1]) == (
        "2 of 200 sounds cut: to their loudest 400 samples, 0.5 s, without 18% of all sound (change it with window)"
    )
    assert entry.changes == dataset.changes
    save(tones / "low" / "long2.wav", tone(10, 600))
    assert load(tones, split="none").shape == (600, 1)


def test_what_only_some_headers_tell_is_counted_while_reading(tones: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(90):
        save(tones / "low" / f"more{index}.wav", tone(10, 100))
    monkeypatch.setattr(SoundForm, "looked_at", 7)
    entry, dataset = data.survey(data.find(str(tones)), DataOptions(split="none")), load(tones, split="none")
    assert entry.shape == dataset.shape
    assert str(entry.changes[0]) == "6 of 7 sounds looked at padded: with silence to 400 samples, 0.5 s"
    assert str(dataset.changes[0]) == "90 of 100 sounds padded: with silence to 400 samples, 0.5 s"


def test_other_sample_rates_are_resampled_to_the_most_common_one(tones: Path) -> None:
    other = tones / "low" / "1.wav"
    at = np.arange(1000) / (2.5 * RATE)
    save(other, np.sin(2 * np.pi * 21 * at) / 2 + np.sin(2 * np.pi * 900 * at) / 4, rate=2000)
    dataset, entry = load(tones, split="none"), data.survey(data.find(str(tones)), DataOptions())
    assert (dataset.sample_rate, entry.sample_rate, dataset.shape, entry.shape) == (RATE, RATE, (400, 1), (400, 1))
    found = dataset.train.inputs[dataset.train.targets == 1][1, 30:-30, 0]
    np.testing.assert_allclose(found, tone(21)[30:-30], atol=0.01)  # without 900 Hz, which 800 samples cannot have
    assert list(map(str, dataset.changes)) == ["1 of 10 sounds resampled: to 800 samples per second"]
    assert entry.changes == dataset.changes
    save(other, tone(21), rate=RATE * 100)
    with pytest.raises(DataError, match=f"cannot use the sound {other}: it has 80000 samples per second and others 80"):
        load(tones, split="none")


@pytest.mark.parametrize(("rate", "new"), [(44_100, 48_000), (16_000, 8000), (8000, 22_050), (44_099, 44_100)])
def test_resampling(rate: int, new: int) -> None:
    def sound(rate: int, samples: int) -> np.ndarray:
        return np.sin(2 * np.pi * 440 * np.arange(samples) / rate + 1).astype(np.float32)

    made = resampled(sound(rate, rate // 2), rate, new)
    assert (made.dtype, len(made)) == (np.float32, round(rate // 2 * new / rate))
    np.testing.assert_allclose(made[100:-100], sound(new, len(made))[100:-100], atol=2e-3)
    assert abs(made - sound(new, len(made))).max() < 0.5
    assert len(resampled(sound(rate, 1), rate, new)) >= 1


def written(name: str, **options: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        soundfile.write(folder / name, tone(20, 800), RATE * 10, **options)
        return folder / name

    return write


def patched(change: Callable[[bytes], bytes], name: str = "odd.wav") -> Callable[[Path], Path]:
    """A file of 16 bits whose bytes are changed."""

    def write(folder: Path) -> Path:
        path = written("plain.wav")(folder)
        (folder / name).write_bytes(change(path.read_bytes()))
        return folder / name

    return write


def with_extension(content: bytes) -> bytes:
    extension = struct.pack("<HHIH", 22, 16, 4, 1) + b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
    chunk = struct.pack("<4sIH", b"fmt ", 40, 0xFFFE) + content[22:36] + extension
    return content[:12] + b"LIST\x03\0\0\0abc\0" + chunk + content[36:]


def sized(size: int) -> Callable[[bytes], bytes]:
    """Says another number of bytes of samples."""
    return lambda content: content.replace(b"data" + struct.pack("<I", 1600), b"data" + struct.pack("<I", size))


TAG = b"ID3\x03\0\0\0\0\0\x0a" + bytes(10)

ODD: dict[str, tuple[Callable[[Path], Path], float]] = {
    "8 bits": (written("a.wav", subtype="PCM_U8"), 0.01),
    "24 bits": (written("a.wav", subtype="PCM_24"), 1e-4),
    "32 bits": (written("a.wav", subtype="PCM_32"), 1e-4),
    "float": (written("a.wav", subtype="FLOAT"), 1e-6),
    "double": (written("a.wav", subtype="DOUBLE"), 1e-6),
    "A-law": (written("a.wav", subtype="ALAW"), 0.02),
    "µ-law": (written("a.wav", subtype="ULAW"), 0.02),
    "ADPCM": (written("a.wav", subtype="IMA_ADPCM"), 0.1),
    "RF64": (written("a.rf64"), 1e-4),
    "FLAC": (written("a.flac"), 1e-4),
    "OGG": (written("a.ogg"), 0.1),
    "AIFF": (written("a.aiff"), 1e-4),
    "AU": (written("a.au"), 1e-4),
    "capital letters": (written("a.WAV", format="WAV"), 1e-4),
    "FLAC as WAV": (written("a.wav", format="FLAC"), 1e-4),
    "extensible": (patched(with_extension), 1e-4),
    "a chunk behind": (patched(lambda content: content + b"LIST\x03\0\0\0abc\0"), 1e-4),
    "bytes behind": (patched(lambda content: content + bytes(99)), 1e-4),
    "a tag before": (patched(lambda content: TAG + content), 1e-4),
    "no size of the whole": (patched(lambda content: content[:4] + bytes(4) + content[8:]), 1e-4),
    "no bytes per second and per block": (patched(lambda content: content[:28] + bytes(6) + content[34:]), 1e-4),
    "an unknown chunk": (patched(lambda content: content[:12] + b"JUNK\x04\0\0\0" + bytes(4) + content[12:]), 1e-4),
    "no size at all": (patched(sized(0)), 1e-4),
    "no size yet": (patched(sized(0xFFFFFFFF)), 1e-4),
    "no size yet, as of a pipe": (patched(sized(0x7FFFF000)), 1e-4),
    "a size with the padding": (patched(sized(1601)), 1e-4),
}
"""What every player reads."""


@pytest.mark.parametrize("name", ODD)
def test_odd_sounds(name: str, tmp_path: Path) -> None:
    write, tolerance = ODD[name]
    path = write(tmp_path)
    sound, header = read_sound(path, 800, RATE * 10)
    assert header == sound_header(path)
    assert (header.rate, header.channels) == (RATE * 10, 1)
    assert header.samples == 800 or name == "ADPCM"  # which has blocks
    start = 100 if tolerance == 0.1 else 0
    np.testing.assert_allclose(sound[start:], tone(20, 800)[start:], atol=tolerance)


def test_an_mp3_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Its header only estimates the number of samples."""
    path = tmp_path / "a.mp3"
    soundfile.write(path, np.tile(tone(20, 800), 40), 16_000)
    whole, content = sound_header(path).samples, path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    sound, header = read_sound(path, whole, 16_000)
    assert whole // 3 < header.samples < whole
    assert abs(sound[: header.samples]).max() > 0.3
    assert not sound[header.samples :].any()


WRONG: dict[str, tuple[Callable[[Path], Path], str]] = {
    "nothing": (patched(lambda _: b""), "not a valid WAV file"),
    "text": (patched(lambda _: b"RIFF and so on"), "not a valid WAV file"),
    "half": (patched(lambda content: content[:844]), "it ends too early, with 800 of 1,600 bytes of samples"),
    "only a header": (patched(lambda content: sized(0)(content[:44])), "it has no samples"),
    "half of a FLAC": (patched(lambda content: content[:30], "a.flac"), "not a valid FLAC file"),
    "too fast": (
        patched(lambda content: content[:24] + struct.pack("<I", 1 << 30) + content[28:]),
        "it has 1,073,741,824 samples per second",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_sounds(name: str, tmp_path: Path) -> None:
    write, reason = WRONG[name]
    path = write(tmp_path)
    for read in (sound_header, lambda path: read_sound(path, 100, RATE * 10)):
        with pytest.raises(DataError) as caught:
            read(path)
        assert str(caught.value).startswith(f"cannot read the sound {path}: {reason}")


def test_damaged_sounds_are_left_out_and_named(tones: Path) -> None:
    other = tones / "low" / "1.wav"
    other.write_bytes(b"RIFF and so on")
    with pytest.raises(DataError, match=f"cannot read the sound {other}: not a valid WAV file"):
        load(tones, invalid_examples="fail")
    dataset = load(tones, invalid_examples="skip", split="none")
    assert len(dataset.train) == 9
    assert dataset.warnings[-1] == "skipped 1 of 10 examples that cannot be read: low/1.wav"
    soundfile.write(other, np.array([0.1, np.nan] * 200), RATE, subtype="FLOAT")
    with pytest.raises(DataError, match=f"cannot use the sound {other}: it has samples that are not finite numbers"):
        load(tones)


def test_flac_stands_beside_wav(tones: Path) -> None:
    (tones / "low" / "1.wav").unlink()
    soundfile.write(tones / "low" / "1.flac", tone(21), RATE)
    dataset = load(tones, split="none")
    assert len(dataset.train) == 10
    np.testing.assert_allclose(dataset.train.inputs[6, :, 0], tone(21), atol=1e-4)
    assert dataset.changes == ()


def test_names_that_are_no_unicode(tones: Path) -> None:
    os.rename(tones / "low" / "1.wav", os.fsencode(tones / "low") + b"/1\xff.wav")
    assert len(load(tones, split="none").train) == 10


def test_a_header_that_promises_more_samples_than_there_are(tones: Path) -> None:
    """It would set the length of all examples, to gigabytes each."""
    for path in (tones / "low").iterdir():
        content = bytearray(path.read_bytes())
        at = content.index(b"data") + 4
        content[at : at + 4] = b"\xf0\xff\xff\xff"
        path.write_bytes(content)
    entry = data.survey(data.find(str(tones)), DataOptions())
    assert entry.shape == (400, 1)
    named = "low/0.wav, low/1.wav, low/2.wav and 2 more"
    assert f"5 of 10 files seem damaged; those that cannot be read will be left out: {named}" in entry.notes
    dataset = load(tones, split="none")
    assert (len(dataset.train), dataset.shape) == (5, (400, 1))
    with pytest.raises(DataError, match=r"0.wav: it ends too early, with 800 of 4,294,967,280 bytes of samples"):
        load(tones, invalid_examples="fail")


def test_a_pipe_is_skipped_and_named(tones: Path) -> None:
    (tones / "low" / "1.wav").unlink()
    os.mkfifo(tones / "low" / "1.wav")
    assert load(tones, split="none").warnings[-1] == "skipped 1 of 10 examples that cannot be read: low/1.wav"


@pytest.mark.parametrize("window", [None, 150])
def test_other_sounds_for_a_trained_model_are_read_as_its_own(tones: Path, tmp_path: Path, window: int | None) -> None:
    for label in sorted(path.name for path in tones.iterdir()):
        for index in range(40):
            save(tmp_path / "other" / label / f"{index}.wav", tone(440, 1000), 2 * RATE)
    plain = load(tones, window=window)
    kept = load(tones, window=window, validation_data=str(tmp_path / "other"), keeps_split=True)
    assert (kept.spec, kept.sample_rate) == (plain.spec, plain.sample_rate)
    assert len(kept.train) == len(plain.train)
    assert kept.validation is not None
    assert len(kept.validation) == 80 * (4 if window else 1)  # 500 samples at this rate have four windows
