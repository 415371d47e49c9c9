import sys
from dataclasses import replace

import pytest

from accel_engine.doctor import CheckResult
from accel_engine.doctor.python_checks import NEWEST, OLDEST, Interpreter, check_python

FINE = Interpreter((3, 12, 4))


def test_this_python_is_described() -> None:
    here = Interpreter.here()
    assert here.version == sys.version_info[:3]
    assert check_python(here).verdict is not CheckResult.FAIL


@pytest.mark.parametrize(
    ("python", "verdict", "words"),
    [
        (FINE, CheckResult.PASS, "CPython 3.12.4 on Linux x86_64, in a virtual environment"),
        (replace(FINE, version=(3, 10, 12)), CheckResult.FAIL, "does not support this"),
        (replace(FINE, version=(3, 14, 0)), CheckResult.FAIL, "3.11 to 3.13"),
        (replace(FINE, bits=32), CheckResult.FAIL, "32-bit"),
        (replace(FINE, implementation="PyPy"), CheckResult.FAIL, "CPython"),
        (replace(FINE, free_threaded=True), CheckResult.FAIL, "free-threaded"),
        (replace(FINE, musl=True), CheckResult.FAIL, "Alpine"),
        (replace(FINE, virtual=False), CheckResult.WARN, "its own virtual environment"),
    ],
)
def test_python(python, verdict, words) -> None:
    finding = check_python(python)
    assert finding.verdict is verdict
    assert words in f"{finding.summary} {finding.cause} {finding.fix}"


def test_colab_needs_no_virtual_environment() -> None:
    finding = check_python(replace(FINE, virtual=False), in_colab=True)
    assert (finding.verdict, finding.summary) == (
        CheckResult.PASS,
        "CPython 3.12.4 on Linux x86_64, of this runtime of Colab",
    )


def test_the_versions_are_those_that_the_package_asks_for(pyproject) -> None:
    assert pyproject["project"]["requires-python"] == f">=3.{OLDEST[1]},<3.{NEWEST[1] + 1}"
