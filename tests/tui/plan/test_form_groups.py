from accel_engine.plan import GROUPS, SPECS, Plan
from accel_tui.plan import form
from accel_tui.plan.form_groups import COLUMNS, FIRST, ORDER, GroupSummary, fields_of, group_of, summarize_group

NAMES = ("optimizer", "weight_decay", "momentum", "clip_norm")


def test_every_field_is_on_the_screen_once() -> None:
    assert sorted(ORDER) == sorted(SPECS)
    assert {group for column in COLUMNS for group in column} == {group for group in GROUPS if fields_of(group)}


def test_what_every_run_decides_is_never_folded() -> None:
    assert all(group_of(name) == "" for names in FIRST.values() for name in names)
    assert group_of("momentum") == "Optimizer"
    assert "learning_rate" not in fields_of("Optimizer")


def test_a_title_does_not_touch_its_values() -> None:
    assert [group for group in GROUPS if len(group) > 15] == []


def test_a_group_says_what_differs_in_it() -> None:
    filled = form.resolve_form({"optimizer": "sgd", "momentum": "0.9"})
    assert summarize_group(NAMES, filled, Plan()) == GroupSummary("sgd, momentum 0.9", is_changed=True)
    assert summarize_group(NAMES, filled, Plan(optimizer="sgd")).text == "momentum 0.9"
    shares = form.resolve_form({"schedule": "cosine", "warmup": "5%"})
    assert summarize_group(("schedule", "warmup"), shares, Plan()).text == "cosine, warmup 5%"


def test_a_group_without_changes_says_what_is_in_it() -> None:
    filled = form.resolve_form({})
    assert summarize_group(NAMES, filled, Plan()) == GroupSummary("optimizer, weight decay, momentum, clip norm")
    assert summarize_group(("augmentation",), filled, Plan()).text == "none"
    assert summarize_group((), filled, Plan()).text == ""


def test_a_group_says_what_is_wrong_in_it() -> None:
    summary = summarize_group(NAMES, form.resolve_form({"weight_decay": "much"}), Plan())
    assert summary == GroupSummary("weight decay ?", is_changed=True, is_wrong=True)
