from pathlib import Path

import pytest

from accel_engine.plan.plan_file import InvalidPlanError, read_plan_file
from accel_engine.search.search_toml import split_search_options

WRONG = """\
batch_size = 0
[search]
trails = 3
trials = "four"
at_once = true
within = "2x"
sampler = "tep"
objectives = 3
direction = 1
[search.over]
lr = "1e-4..1e-1"
epochs = "9..2"
learning_rate = "1e-4..1e-1:log"
"""


def test_all_mistakes_of_the_table_and_the_plan_come_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(WRONG)
    with pytest.raises(InvalidPlanError) as raised:
        split_search_options(read_plan_file(path))
    title, *lines = str(raised.value).replace(f"{path}:", "").splitlines()
    assert title == "the plan has 10 errors"
    assert [line.split(":")[0] for line in lines[:8]] == ["1", "3", "4", "5", "6", "7", "8", "9"]
    assert lines[1:4] == [
        "3: search.trails = 3: unknown field; did you mean trials?",
        "4: search.trials = 'four': must be an integer from 1 to 100000",
        "5: search.at_once = true: must be an integer from 0 to 100000",
    ]
    assert lines[5] == "7: search.sampler = 'tep': did you mean tpe? Must be one of auto, tpe, random, grid"
    assert [each.field for each in raised.value.errors][-2:] == ["search.over.lr", "search.over.epochs"]


def test_mistakes_in_a_table_of_one_line_have_its_line(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("\n[search]\nover = {epochs = 3}\n")
    with pytest.raises(InvalidPlanError, match=r"plan\.toml:3: search\.over\.epochs = 3: must be a range or a list"):
        split_search_options(read_plan_file(path))
    path.write_text("search = 3")
    with pytest.raises(InvalidPlanError, match=r"plan\.toml:1: search = 3: must be a table: \[search\]"):
        split_search_options(read_plan_file(path))


def test_a_right_table_is_split_from_its_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        'epochs = 2\n[search]\ntrials = 3\nwithin = "2h"\nobjectives = ["time"]\nover.batch_size = [8, 16]\n'
    )
    plan, options = split_search_options(read_plan_file(path))
    assert plan.values == {"epochs": 2}
    assert (options.trials, options.within, options.objectives) == (3, "2h", ("time",))
    assert [(each.name, each.choices) for each in options.parameters] == [("batch_size", (8, 16))]
