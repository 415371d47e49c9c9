"""Every entry of a field answers every question."""

from dataclasses import MISSING, fields
from typing import get_args

import pytest

from accel_engine.plan import GROUPS, SPECS, USES, WORDS, affecting
from accel_engine.plan.field_spec import ChangedBy, Effect, FieldUse, FieldWords, Group

LABEL_WIDTH = 16
"""Cells for a label in the form."""


def test_no_question_is_answered_by_omission() -> None:
    required = {each.name for kind in (FieldWords, FieldUse) for each in fields(kind) if each.default is MISSING}
    assert required == {"group", "why", "affects", "changed_by", "fixed", "only_training"}


@pytest.mark.parametrize("name", list(SPECS))
def test_an_entry_answers_every_question(name: str) -> None:
    spec, words, use = SPECS[name], WORDS[name], USES[name]
    assert words.why
    assert len(f"default {words.why}") <= 78
    assert words.group in get_args(Group)
    assert len(words.label or name.replace("_", " ")) <= LABEL_WIDTH
    assert len({word.lower() for word in words.synonyms}) == len(words.synonyms)
    assert not words.suggestions or not spec.choices
    assert set(use.affects) <= set(get_args(Effect))
    assert len(set(use.affects)) == len(use.affects)
    assert use.changed_by in get_args(ChangedBy)
    assert use.replaced_by or not use.argument
    assert not use.fixed.endswith(".")


def test_every_group_and_effect_has_fields() -> None:
    assert tuple(GROUPS) == get_args(Group)
    assert all(affecting(effect) for effect in get_args(Effect))


def test_what_changes_the_examples_never_changes_in_a_run() -> None:
    assert {USES[name].changed_by for name in affecting("data")} == {"nothing"}
