"""What a user may copy from the documents works: commands, options, links, and the examples of the guide to data."""

import csv
import json
import math
import re
import shlex
import wave
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from accel_engine import data
from accel_engine.data.dataset import Split
from accel_engine.devices.device_types import Device
from accel_engine.plan import SPECS, Plan, resolved_plan
from accel_tui.cli.root import root
from campaigns import totals

ROOT = Path(__file__).parents[1]
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))
GUIDE = ROOT / "docs" / "data.md"
HOST = (Device("cpu:0", "cpu", "a processor"),)


def commands(document: Path) -> list[str]:
    """The indented lines that call the program, and commands in tables."""
    text = document.read_text(encoding="utf-8")
    lines = re.findall(r"^    (accel-tui .*)$", text, re.MULTILINE)
    return [*lines, *re.findall(r"^\|.*`(accel-tui (?:train|run) [^`]*)`", text, re.MULTILINE)]


def parse(command: str) -> tuple[str, dict[str, Any]]:
    """The name of a command, and the values of its parameters; nothing is run."""
    words = shlex.split(command, comments=True)
    words = words[: words.index(">")] if ">" in words else words
    context = root.make_context("accel-tui", words[1:])
    name, found, rest = root.resolve_command(context, [*context._protected_args, *context.args])
    assert name is not None
    assert found is not None
    return name, found.make_context(name, rest, parent=context).params


COMMANDS = [(document.name, line) for document in DOCUMENTS for line in commands(document) if "..." not in line]


@pytest.mark.parametrize(("document", "command"), COMMANDS)
def test_commands_are_understood(document: str, command: str) -> None:
    words = shlex.split(command, comments=True)
    if any(word in words for word in ("-h", "--help", "--version")):
        return
    name, _ = parse(command)
    assert name == words[1]


def test_documents_have_commands() -> None:
    assert {"README.md", "data.md", "what-trains.md", "recorded-scripts.md"} <= {document for document, _ in COMMANDS}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        linked = (document.parent / path).resolve() if path else document
        assert linked.exists(), target
        if anchor:
            assert anchor in headings(linked), target


def headings(document: Path) -> set[str]:
    """The anchors of a document's headings."""
    lines = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def test_options_of_the_guide_exist() -> None:
    options = set(re.findall(r"`(--[a-z-]+)", GUIDE.read_text(encoding="utf-8"))) - {"--brief", "--json"}
    assert {option.removeprefix("--").replace("-", "_") for option in options} <= set(SPECS)


def code(name: str) -> str:
    """The block of the guide that begins with the name of a file."""
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (found,) = (block for block in blocks if block.startswith(f"# {name}"))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the guide's commands name, in which they are run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_model.py").write_text(
        "def build(): ...\nautoencoder = forecast = writer = segment = listen = read = build\n"
    )
    Path("my_data.py").write_text(code("my_data.py"))
    arrays()
    tables()
    for name in ("story.txt", "other.txt"):
        Path(name).write_text("the quick brown fox jumps over the lazy dog\n" * 50)
    folders()
    records()
    return tmp_path


def arrays() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 8)), np.arange(100) % 2
    np.savez("my_data.npz", x=x, y=y)
    np.savez("shop.npz", age=x[:, :1], words=rng.integers(0, 9, (100, 5)), clicked=y)
    np.savez("sensor.npz", temperature=x[:, 0], wind=x[:, 1])


def write(path: str, names: str, rows: Sequence[Sequence[object]]) -> None:
    with Path(path).open("w", newline="") as file:
        csv.writer(file).writerows([names.split(), *rows])


def tables() -> None:
    houses = [(index, "ab"[index % 2], index % 7, f"a house near {index}", index * 10.5) for index in range(100)]
    write("houses.csv", "id city rooms note price", houses)
    write("valid.csv", "id city rooms note price", houses[:20])
    Path("sales.csv").write_text("rooms;price\n" + "".join(f"{index % 7};{index}.000,50 €\n" for index in range(1, 99)))
    parts = ("train", "train", "train", "val", "test")
    flowers = [(index / 10, "xyz"[index % 3], parts[index // 3 % 5]) for index in range(90)]
    write("flowers.csv", "length species part", flowers)
    hours = [f"2024-01-{1 + hour // 24:02} {hour % 24:02}:00" for hour in range(400)]
    climate = [(time, math.sin(hour), hour % 5) for hour, time in enumerate(hours)]
    write("climate.csv", "time temperature wind", climate)
    write("stations.csv", "time station temperature", [(time, name, sun) for name in "AB" for time, sun, _ in climate])


def folders() -> None:
    for name, count in (("cats", 10), ("dogs", 12)):
        for kind in ("photos", "voices", "reviews"):
            Path(kind, name).mkdir(parents=True)
        for index in range(count):
            Image.new("RGB", (12, 10), (index, 0, 0)).save(f"photos/{name}/{index}.png")
            Path(f"reviews/{name}/{index}.txt").write_text(f"a text about {name}")
            with wave.open(f"voices/{name}/{index}.wav", "wb") as sound:
                sound.setparams((1, 2, 8000, 0, "NONE", ""))
                sound.writeframes(bytes(800))
    for kind in ("images", "masks"):
        Path("scenes", kind).mkdir(parents=True)
        for index in range(12):
            Image.new("L", (12, 10), index % 2).save(f"scenes/{kind}/{index}.png")


def records() -> None:
    """Records of the features that the guide describes."""
    (description,) = re.findall(r"^```json\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
    image = tf.io.encode_png(tf.zeros((28, 28, 1), tf.uint8)).numpy()
    encoded = tf.train.Feature(bytes_list=tf.train.BytesList(value=[image]))
    features = tf.train.Features(
        feature={name: encoded if name == "image" else label for name in json.loads(description)["features"]}
    )
    Path("digits.features.json").write_text(description)
    with tf.io.TFRecordWriter("digits.tfrecord") as file:
        for _ in range(20):
            file.write(tf.train.Example(features=features).SerializeToString())


def test_plans_of_the_guide_fit_their_data(folder: Path) -> None:
    for command in commands(GUIDE):
        name, values = parse(command)
        plan = Plan.from_mapping({field: value for field, value in values.items() if field in SPECS and value})
        if name == "train":
            resolved_plan.resolve_to_train(plan, HOST)
        entry = data.survey(data.find(plan.data), plan.data_options)
        assert entry.function or entry.spec is not None, command


@pytest.mark.parametrize(
    ("function", "task", "sizes"), [("load", "regression", (900, 100)), ("splits", "classification", (400, 50))]
)
def test_functions_of_the_guide_return_arrays(folder: Path, function: str, task: str, sizes: tuple[int, int]) -> None:
    dataset = data.load(f"my_data.py:{function}", Plan().data_options)
    assert dataset.task == task
    assert isinstance(dataset.train, Split)
    assert isinstance(dataset.validation, Split)
    assert (len(dataset.train), len(dataset.validation)) == sizes


def test_the_stream_of_the_guide_has_a_validation_split(folder: Path) -> None:
    dataset = data.load("my_data.py:stream", Plan(batch_size=50).data_options)
    assert not isinstance(dataset.train, Split)
    assert dataset.validation is not None
    assert not isinstance(dataset.validation, Split)
    assert (dataset.train.batches, dataset.validation.batches) == (18, 2)


@pytest.mark.parametrize("campaign", ["kills", "disk", "faults", "fuzzing", "mutants"])
def test_the_totals_of_campaigns_are_those_that_were_measured(campaign: str) -> None:
    rows = totals.read(campaign)
    command = f"`make {'fuzz' if campaign == 'fuzzing' else campaign}`"
    (line,) = (
        line
        for line in (ROOT / "docs/reliability.md").read_text().splitlines()
        if command in line and line.startswith("|")
    )
    tries, failures = line.split("|")[2:4]
    assert tries.strip() == f"{sum(row.tries for row in rows):,}"
    assert failures.split()[0] == f"{sum(row.failures for row in rows):,}"


def test_the_tests_that_the_document_on_reliability_names_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/reliability.md").read_text())
    assert len(named) > 30
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (ROOT / file).read_text()]
    assert not missing


def test_the_moving_picture_plays_in_a_page_that_lets_it_load_nothing() -> None:
    picture = (ROOT / "screenshots" / "training.svg").read_text()
    assert len(picture.encode()) < 1_500_000
    names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(picture).iter()}
    assert names <= {"svg", "style", "rect", "g", "text", "path"}
    assert picture.count("http") == 1  # the name of the format
    assert "url(" not in picture
    assert (ROOT / "README.md").read_text().split("\n")[4].endswith("(screenshots/training.svg)")
