from accel_engine.plan import SPECS
from accel_tui.plan.form_groups import DATA, DECISIONS, FIRST, ORDER, OTHERS, OUTCOME


def test_every_field_has_a_place_on_the_screen() -> None:
    assert sorted(ORDER) == sorted(SPECS)
    assert sorted((*FIRST, *(name for names in OTHERS.values() for name in names))) == sorted(SPECS)


def test_six_decisions_are_always_shown_beside_the_data_and_the_name() -> None:
    assert DECISIONS == ("model", "epochs", "batch_size", "learning_rate", "strategy", "devices")
    assert (DATA, OUTCOME) == (("data", "target"), ("name",))
