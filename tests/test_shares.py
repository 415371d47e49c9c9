"""An ordinary run takes a share of tests that are alike, which follows from the program's code."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import shares

pytest_plugins = ["pytester"]

TESTS = """
import pytest

pytestmark = pytest.mark.share(4)

@pytest.mark.share(2)
@pytest.mark.parametrize("case", range(6))
def test_cases(case): pass

@pytest.mark.parametrize("case", range(8))
def test_others(case): pass

@pytest.mark.campaign
def test_of_the_campaign(): pass

@pytest.mark.share(3)
def test_alone(): pass
"""

TRAINING = """
import pytest

@pytest.fixture
def gym(): pass

@pytest.mark.parametrize("case", range(9))
def test_training(gym, case): pass

def test_without(): pass
"""

IN_FOLDER = """
import pytest

@pytest.mark.parametrize("case", range(5))
def test_in_folder(case): pass

@pytest.mark.share(5)
@pytest.mark.parametrize("case", range(5))
def test_of_another_share(case): pass
"""


DRAWN = {
    "test_cases": 3,
    "test_others": 2,
    "test_alone": 1,
    "test_training": 3,
    "test_without": 1,
    "test_in_folder": 2,
    "test_of_another_share": 1,
}


@pytest.fixture(autouse=True)
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "SEED", "1")
    monkeypatch.setattr(shares, "TRAINING_SHARE", 3)
    monkeypatch.setattr(shares, "FOLDERS", {"tests/tui/screens/": 2})
    screens = pytester.path / "tests" / "tui" / "screens"
    screens.mkdir(parents=True)
    (screens.parents[1] / "test_alike.py").write_text(TESTS)
    (screens.parents[1] / "test_trains.py").write_text(TRAINING)
    (screens / "test_a_screen.py").write_text(IN_FOLDER)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makeconftest("""
        import pytest, shares

        def pytest_configure(config):
            config.addinivalue_line("markers", "share(count)")
            config.addinivalue_line("markers", "campaign")

        @pytest.hookimpl(tryfirst=True)
        def pytest_collection_modifyitems(config, items):
            shares.leave_out_others(config, items)
    """)


@pytest.fixture
def run(pytester: pytest.Pytester) -> Callable[..., list[str]]:
    def names(*arguments: str, marks: str = shares.ORDINARY) -> list[str]:
        collected = pytester.inline_run("--collect-only", "-m", marks, *arguments).getcalls("pytest_collection_finish")
        return [item.name for item in collected[0].session.items]

    return names


def test_each_group_has_its_share(run: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = set()
    for seed in "1234":
        monkeypatch.setattr(shares, "SEED", seed)
        names = run("tests")
        assert names == run("tests")
        assert Counter(name.partition("[")[0] for name in names) == DRAWN
        drawn.update(names)
    assert len(drawn) > len(names)


@pytest.mark.parametrize(
    "arguments", [("tests/test_alike.py",), ("tests/test_alike.py::test_others",), ("tests", "-k", "others")], ids=str
)
def test_what_is_asked_for_runs(run: Callable[..., list[str]], arguments: tuple[str, ...]) -> None:
    assert set(run(*arguments)) >= {f"test_others[{case}]" for case in range(8)}


def test_all_run_if_they_are_wanted_and_in_a_campaign(
    run: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(run("tests", marks="campaign")) == 35
    assert len(run("tests", marks="")) == 36
    monkeypatch.setattr(shares, "SEED", "all")
    assert len(run("tests")) == 35


def test_code_that_changes_draws_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shares, "__file__", str(tmp_path / "tests" / "shares.py"))
    for package in ("engine", "tui"):
        (tmp_path / package).mkdir()
    code = tmp_path / "engine" / "code.py"
    code.write_text("1")
    before = shares.code_digest()
    assert shares.code_digest() == before
    code.write_text("2")
    assert shares.code_digest() != before
