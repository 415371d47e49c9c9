import json
import tomllib
from pathlib import Path

import pytest

from accel_engine.errors import UsageError
from accel_engine.plan.plan_errors import valid_part
from accel_engine.plan.plan_file import read_plan_file
from accel_engine.plan.source_lines import json_lines, toml_lines


def mistakes(path: Path, text: str) -> list[str]:
    """The errors of a plan file, without its path."""
    path.write_text(text)
    file = read_plan_file(path)
    _, errors = valid_part(file.values)
    return [file.describe(error).removeprefix(str(path)) for error in errors.values()]


def test_every_mistake_is_named_with_its_line_and_what_would_be_right(tmp_path: Path) -> None:
    text = """# mine
model = "mpl"
batch_size = "x"
batch-sise = 3

data = "nowhere.csv"
optimizer = "adam"
momentum = 0.9
warmup = 0.1
xla = "onn"
[plan]
epochs = 3
"""
    said = mistakes(tmp_path / "plan.toml", text)
    assert len(said) == 8
    for line, words in {
        2: "model = 'mpl': no such model; did you mean mlp?",
        3: "batch_size = 'x': must be an integer of at least 1",
        4: "batch-sise = 3: unknown field; did you mean batch_size?",
        6: "data = 'nowhere.csv': no such file",
        8: "momentum = 0.9: needs the optimizer sgd or rmsprop: use optimizer = 'sgd'",
        9: "warmup = 0.1: needs a schedule: use schedule = 'cosine'",
        10: "xla = 'onn': did you mean on? Must be one of auto, on, off",
        11: "remove the header [plan] and keep epochs",
    }.items():
        assert any(each.startswith(f":{line}: ") and words in each for each in said), (line, words, said)


def test_the_lines_of_json_are_named_too(tmp_path: Path) -> None:
    values = {'note "epochs": ': {"epochs": 1}, "epochs": 0, "devices": ["xla", 3]}
    said = mistakes(tmp_path / "plan.json", json.dumps(values, indent=1))
    assert [each.partition(": ")[0] for each in said] == [":2", ":5", ":6"]
    assert "at least 1" in said[1]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plan.toml", "restore_best = true\nshuffle = false\nepochs = true\nmetrics = false\n"),
        ("plan.json", '{"restore_best": true,\n"shuffle": false,\n"epochs": true,\n"metrics": false}'),
    ],
)
def test_booleans_are_on_and_off(tmp_path: Path, name: str, text: str) -> None:
    said = mistakes(tmp_path / name, text)
    assert [each.partition(": must be")[0].partition(": ")[2] for each in said] == ["epochs = true", "metrics = false"]
    plan, _ = valid_part(read_plan_file(tmp_path / name).values)
    assert (plan.restore_best, plan.shuffle) == ("on", "off")


def test_what_contradicts_a_wrong_value_only_is_no_mistake(tmp_path: Path) -> None:
    said = mistakes(tmp_path / "plan.toml", 'optimizer = "sdg"\nmomentum = 0.9\nnesterov = "on"\n')
    assert [each.partition(" = ")[0] for each in said] == [":1: optimizer"]


def test_the_valid_fields_make_a_plan() -> None:
    plan, errors = valid_part({"epochs": 0, "seed": 7, "nonsense": 1})
    assert plan.changed() == {"seed": 7}
    assert set(errors) == {"epochs", "nonsense"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("plan.toml", "\nmodel = cnn\n", ':2: invalid TOML: Invalid value; quote texts, e.g. model = "cnn"'),
        ("plan.toml", "model =", ":1: invalid TOML: Invalid value"),
        ("plan.toml", "epochs = 1\nepochs = 2", ":2: invalid TOML: Cannot overwrite a value; the name is already set"),
        ("plan.toml", "epochs\n", ":1: invalid TOML: Expected '=' after a key"),
        ("plan.json", '{"epochs": 1,\n "seed": }', ":2: invalid JSON: Expecting value at column 10"),
        ("plan.json", "[]", ": the plan is not a JSON object"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_told_with_its_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_plan_file(path)
    assert str(caught.value).startswith(f"{path}{said}")


def test_a_file_that_cannot_be_read_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.toml: No such file or directory$"):
        read_plan_file(tmp_path / "nowhere.toml")
    with pytest.raises(UsageError):
        read_plan_file(tmp_path)
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8"):
        read_plan_file(tmp_path / "plan.toml")


def test_lines_of_toml_are_found_in_every_way_to_write_a_name() -> None:
    text = "a = 1\n[ b ]\n'c' = 2\nd . \"e.f\" = 3\n[keys]\n\"run.pause\" = 'x'\n# g = 1"
    assert toml_lines(text) == {"a": 1, "b": 2, "b.c": 3, "b.d.e.f": 4, "keys": 5, "keys.run.pause": 6}


def test_what_looks_like_a_name_within_a_long_text_is_none() -> None:
    text = 'a = """\nb = 1\n[c]\n"""\nb = 2\nd = [\n  "e = 1",\n]\n'
    assert tomllib.loads(text)["b"] == 2
    assert toml_lines(text) == {"a": 1, "b": 5, "d": 6}


def test_lines_of_json_are_those_of_the_outer_object() -> None:
    text = '{"a": {"b": 1},\n"c": ["d", {"e": 2}],\n\n"f\\"g": "h: i"}'
    assert json_lines(text) == {"a": 1, "c": 2, 'f"g': 4}
