import json
import os
import stat
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from accel_engine.errors import PlanError, UsageError
from accel_engine.plan import SPECS, Plan
from accel_engine.plan.plan_file import InvalidPlanError, read_plan_file, valid_part
from accel_engine.plan.source_text import json_lines, toml_lines


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


HOSTILE = {
    "number.toml": ("epochs = " + "9" * 5000, ":1: a number has more than 4,300 digits"),
    "number.json": ('{"model": "mlp",\n"epochs": ' + "9" * 5000 + "}", ":2: a number has more than 4,300 digits"),
    "hexadecimal.toml": (
        "epochs = 0x" + "f" * 50_000,
        ":1: epochs = a number of thousands of digits: must be",
    ),
    "huge.toml": (f"epochs = {10**300}", "…: must be an integer of at least 1, up to 1,000,000,000,000,000"),
    "float.json": ('{"learning_rate": 1' + "0" * 400 + "}", "…: must be a number above 0, or auto, up to 1,000,"),
    "lists.toml": ("x = " + "[" * 100_000, ": tables or lists are nested more than 20 deep"),
    "lists.json": ("[" * 100_000, ": tables or lists are nested more than 20 deep"),
    "tables.toml": ("x = " + "{a = " * 30 + "1" + "}" * 30, ": tables or lists are nested more than 20 deep"),
    "dotted.toml": ("epochs = 1\n" + ".".join("a" * 50_000) + " = 1", ":2: a name has more than 20 parts"),
    "quoted.toml": ("epochs = 1\n" + " . ".join(["'a b'"] * 30_000) + " = 1", ":2: a name has more than 20 parts"),
    "text.toml": ("model = '" + "x" * 100_000 + "'", "…: no such model"),
    "list.toml": ("target = [" + "1," * 50_000 + "]", "…: must be a list of names"),
    "name.toml": ("x" * 100_000 + " = 1", ": a name has 100,000 characters: xxxx"),
    "names.toml": ("\n".join(f"k{index} = 1" for index in range(2000)), ": it has more than 1,000 names"),
    "size.toml": ("# " + "x" * 300_000, ": it is larger than 256 KiB"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_huge_numbers_names_and_nesting_are_explained_in_a_line(tmp_path: Path, name: str) -> None:
    text, expected = HOSTILE[name]
    try:
        said = "\n".join(mistakes(tmp_path / name, text))
    except UsageError as error:
        said = str(error)
    assert expected in said
    assert len(said) < 600


def test_only_the_first_of_many_mistakes_are_listed() -> None:
    _, errors = valid_part({f"k{index}": 1 for index in range(100)})
    lines = str(InvalidPlanError(list(errors.values()))).splitlines()
    assert (lines[0], len(lines), lines[-1]) == ("the plan has 100 errors", 22, "and 80 more")


@pytest.mark.parametrize("kind", ["socket", "directory", "device"])
def test_a_plan_is_a_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "plan.toml"
    make: dict[str, Callable[[], object]] = {
        "socket": lambda: os.mknod(path, stat.S_IFSOCK | 0o600),
        "directory": path.mkdir,
        "device": lambda: path.symlink_to("/dev/zero"),
    }
    make[kind]()
    with pytest.raises(UsageError, match=f"cannot read the plan {path}: it is a {kind}, not a file"):
        read_plan_file(path)


@pytest.mark.parametrize(("text", "said"), [('model = "mlp"', ""), ("x" * 300_000, "larger than 256 KiB")])
def test_a_plan_may_be_what_a_command_writes(text: str, said: str) -> None:
    read_end, write_end = os.pipe()

    def write() -> None:
        with open(write_end, "w") as file:
            file.write(text)

    with ThreadPoolExecutor(1) as pool, open(read_end):  # closed first, so that nobody waits for the other
        pool.submit(write)
        if said:
            with pytest.raises(UsageError, match=said):
                read_plan_file(Path(f"/dev/fd/{read_end}"))
        else:
            assert read_plan_file(Path(f"/dev/fd/{read_end}")).values == {"model": "mlp"}


@pytest.mark.parametrize("text", ["9" * 5000, "x" * 100_000, "1e999", "-", "nan", "١٢", "\0", "a," * 50_000, "9" * 400])
def test_options_of_any_length_are_parsed_or_refused_in_a_line(text: str) -> None:
    said = []
    for name, spec in SPECS.items():
        try:
            spec.parse(name, text)
        except PlanError as error:
            said.append(str(error))
    assert max(map(len, said)) < 700


@pytest.mark.parametrize("data", ["synthetic:" + "9" * 5000, "synthetic:8x8:" + "9" * 5000, "synthetic:" + "1x" * 5000])
def test_sizes_of_thousands_of_digits_are_refused(data: str) -> None:
    for values in ({"data": data}, {"image_size": data.removeprefix("synthetic:")}):
        with pytest.raises(PlanError, match=r"must be (synthetic|HEIGHTxWIDTH)"):
            Plan.from_mapping(values)
