from accel_engine.plan import SPECS
from accel_tui.plan.form_groups import DATA, DECISIONS, FIRST, NEXT, ORDER, OTHERS, OUTCOME


def test_every_field_has_a_place_on_the_screen() -> None:
    assert sorted(ORDER) == sorted(SPECS)
    assert sorted((*FIRST, *(name for names in OTHERS.values() for name in names))) == sorted(SPECS)


def test_each_field_that_is_not_always_shown_is_listed_with_its_default_where_there_is_room() -> None:
    assert sorted((*FIRST, *NEXT)) == sorted(SPECS)
    assert NEXT[:3] == ("optimizer", "schedule", "loss")


def test_six_decisions_are_always_shown_beside_the_data_and_the_name() -> None:
    assert DECISIONS == ("model", "epochs", "batch_size", "learning_rate", "strategy", "devices")
    assert (DATA, OUTCOME) == (("data", "target"), ("name",))
