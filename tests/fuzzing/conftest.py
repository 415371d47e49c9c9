"""Settings of Hypothesis: the usual tests try little, with the same seed; ``make fuzz`` tries more, by seed.

Examples of ``make fuzz`` also have constants of the modules that the process has imported. Those of the usual tests do
not: they would differ with the tests before, and in a new environment a minute passed until all were parsed.

``FUZZ_EXAMPLES`` is the number of examples per test. With it, pytest's ``--hypothesis-seed`` chooses them. Each example
of each test of this folder is bounded in time and memory, and counted.
"""

import os
from collections.abc import Generator
from functools import wraps
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from fuzzing.bounds import bounded

EXAMPLES = os.environ.get("FUZZ_EXAMPLES")

settings.register_profile(
    "fuzzing",
    max_examples=int(EXAMPLES or 25),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,  # tests do not depend on how fast they run
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("fuzzing")
if EXAMPLES is None:
    providers._get_local_constants = lambda: providers._local_constants  # type: ignore[attr-defined]  # no setting does


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Bound each example of a test in time and memory; report how many there were as a property of the test."""
    handle = getattr(pyfuncitem.obj, "hypothesis", None)
    if handle is None:
        return (yield)
    example, tries = handle.inner_test, 0

    @wraps(example)
    def bounded_example(*args: Any, **kwargs: Any) -> None:
        nonlocal tries
        tries += 1
        with bounded():
            example(*args, **kwargs)

    handle.inner_test = bounded_example
    try:
        return (yield)
    finally:
        handle.inner_test = example
        pyfuncitem.user_properties.append(("examples", tries))
