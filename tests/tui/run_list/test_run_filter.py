from pathlib import Path
from typing import Any

import pytest

from accel_engine.run import Annotations, RunInfo, RunSummary, Status
from accel_tui.run_list.run_filter import Term, key_error, matches, parse_filter


def run(status: Status | None = Status.FINISHED, annotations: Annotations | None = None, **plan: Any) -> RunSummary:
    values = {"model": "resnet20", "data": "cifar10", "strategy": "mirrored", "batch_size": 64, **plan}
    place = Path("k7m2-best-try")
    if status is None:
        return RunSummary(place.name, place, None, problem="damaged")
    info = RunInfo(place.name, place, None, values, 0.0, "node7", 1, status, annotations or Annotations())
    return RunSummary(place.name, place, info)


def test_words_and_keys_are_told_apart() -> None:
    assert parse_filter("  CNN status:failed lr:1e-3 ") == (
        Term("cnn"),
        Term("failed", "status"),
        Term("1e-3", "learning_rate"),
    )


def test_what_looks_like_a_key_and_is_none_is_a_word() -> None:
    assert parse_filter("net.py:build http://x") == (Term("net.py:build"), Term("http://x"))


def test_words_in_quotation_marks_belong_together_also_before_the_second_is_typed() -> None:
    assert parse_filter('"two words" name:"my run') == (Term("two words"), Term("my run", "name"))


@pytest.mark.parametrize("words", ["", " ", '"', "status:", 'tag:"', "lr:"])
def test_what_is_not_typed_to_its_end_hides_nothing(words: str) -> None:
    assert parse_filter(words) == ()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", True),
        ("k7m2", True),
        ("BEST", True),
        ("resnet cifar", True),
        ("resnet mnist", False),
        ("status:fin", True),
        ("status:ished", False),
        ("status:failed", False),
        ("model:net20", True),
        ("model:cnn", False),
        ("tag:pap", True),
        ("tag:per", False),
        ("tags:old", True),
        ("old", True),
        ('note:"the new data"', True),
        ("name:second", True),
        ("host:node7", True),
        ("batch:64", True),
        ("batch_size:6", False),
        ("learning_rate:1e-3", True),
        ("lr:0.001", True),
        ("lr:fast", False),
        ("devices:gpu:0", True),
        ("validation:epoch", True),
    ],
)
def test_a_run_is_found_by_all_that_is_known_of_it(words: str, found: bool) -> None:
    labels = Annotations("second", "with the new data", ("Paper", "old"))
    assert matches(run(annotations=labels, learning_rate=0.001, devices=["gpu:0"]), parse_filter(words)) is found


def test_a_run_that_cannot_be_read_is_found_by_its_id_and_as_such() -> None:
    assert matches(run(None), parse_filter("k7m2 status:unreadable"))
    assert not matches(run(None), parse_filter("model:resnet20"))
    assert not matches(run(None), parse_filter("epochs:3"))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("cnn status:failed lr:0.1", ""),
        ("synthetic:8x8 http://host net.py:build", ""),
        ('"foo:bar"', ""),
        ("foo:", ""),
        ("statsu:failed", "no key 'statsu'; did you mean status"),
        ('modle:"my net"', "no key 'modle'; did you mean model?"),
        ("foo:bar", 'quote it: "foo:bar"'),
        ("status:bogus", "no status 'bogus'; known: queued, starting"),
        ("status:fin", ""),
    ],
)
def test_an_unknown_key_is_an_error_with_the_nearest_keys(text: str, error: str) -> None:
    assert key_error(text) == error if not error else error in key_error(text)


def test_the_settings_of_a_script_are_found_and_its_unknown_fields_are_no_defaults() -> None:
    values = {
        "name": "mine",
        "model": "",
        "data": "loop.py",
        "config": {"batch_size": "128", "model": "vit", "seed": 0, "devices": [0, 1]},
    }
    info = RunInfo("mine", Path("mine"), None, values, 0.0, "node7", 1, Status.FINISHED, script="loop.py")
    recorded = RunSummary("mine", Path("mine"), info)
    found = {
        words: matches(recorded, parse_filter(words))
        for words in ("batch:128", "batch:64", "model:vit", "seed:0", "devices:0,1")
    }
    assert found == {"batch:128": True, "batch:64": False, "model:vit": True, "seed:0": True, "devices:0,1": True}
    assert not matches(recorded, parse_filter("epochs:10"))
    assert not matches(recorded, parse_filter("precision:none"))
