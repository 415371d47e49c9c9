"""What users choose of a bench, on the command line and on its screen: parsing, and what goes together."""

import math
import re
from dataclasses import dataclass

from accel_engine.errors import UsageError
from accel_engine.requests.bench_models import BenchOptions

XLA = {"both": (False, True), "on": (True,), "off": (False,)}
"""Whether models are compiled, by the name of the choice."""

DEVICES = (r"(cpu|gpu)(:\d+)?", "cpu, gpu and such as gpu:1")
"""A regular expression of a device, and examples."""

PRECISIONS = (r"float32|mixed_float16|mixed_bfloat16", "float32, mixed_float16, mixed_bfloat16")
"""A regular expression of a precision, and all of them."""

_LATENCY = re.compile(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s)")
_UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchChoices:
    """The choices of the screen, as text; empty for the program's.

    Attributes:
        scenario: One of :data:`accel_engine.inference.candidate.SCENARIOS`.
        target_latency: The most that p99 may be.
        target_rate: Examples per second to be served.
        seconds: Time limit of a batch size.
        devices: Where to measure.
        xla: A key of :data:`XLA`.
        precisions: Keras' dtype policies.
    """

    scenario: str = "multi-stream"
    target_latency: str = ""
    target_rate: str = ""
    seconds: str = "5"
    devices: str = ""
    xla: str = "both"
    precisions: str = ""

    def options(self) -> BenchOptions:
        """How to measure.

        Raises:
            UsageError: A text cannot be parsed, or choices contradict each other.
        """
        target = latency(self.target_latency) if self.target_latency.strip() else None
        check_scenario(self.scenario, None, target)
        return BenchOptions(
            scenario=self.scenario,
            seconds=_number(self.seconds, 0.1, 3600, "time limit: enter seconds from 0.1 to 3600"),
            target_latency=target,
            devices=words(self.devices, *DEVICES) if self.devices.strip() else (),
            precisions=words(self.precisions, *PRECISIONS) if self.precisions.strip() else (),
            xla=XLA[self.xla],
        )

    def rate(self) -> float | None:
        """Examples per second to be served; ``None`` for none.

        Raises:
            UsageError: It is no number greater than 0.
        """
        if not self.target_rate.strip():
            return None
        return _number(self.target_rate, 1e-9, 1e12, "rate: enter examples per second, such as 500")


def check_scenario(scenario: str, batch_sizes: tuple[int, ...] | None, target_latency: float | None) -> None:
    """Raise if choices contradict the scenario.

    Args:
        scenario: One of :data:`accel_engine.inference.candidate.SCENARIOS`.
        batch_sizes: What is measured; ``None`` for the program's choice.
        target_latency: Seconds that p99 may be at most; ``None`` for any.

    Raises:
        UsageError: They do.
    """
    if scenario == "server" and target_latency is None:
        raise UsageError("server searches the highest rate within a latency: give a target latency")
    if scenario == "offline" and target_latency is not None:
        raise UsageError("offline has no latencies: leave out the target latency, or use multi-stream")
    if scenario == "single-stream" and batch_sizes not in (None, (1,)):
        raise UsageError("single-stream sends single examples: leave out batch sizes, or use multi-stream")


def _number(text: str, low: float, high: float, message: str) -> float:
    """A number within both ends.

    Raises:
        UsageError: It is none.
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not low <= found <= high:
        raise UsageError(f"{text!r} is no {message}")
    return found


def latency(text: str) -> float:
    """Parse a time with its unit, such as ``10ms``; gives seconds.

    Raises:
        UsageError: It is none.
    """
    found = _LATENCY.fullmatch(text.strip())
    if not found or not 0 < float(found[1]) < math.inf:
        raise UsageError(f"{text!r} is no latency: give one with its unit, such as 10ms, 500us or 1.5s")
    return float(found[1]) * _UNITS[found[2]]


def words(text: str, pattern: str, examples: str) -> tuple[str, ...]:
    """Parse words that are separated by commas.

    Args:
        text: The words.
        pattern: A regular expression of a word.
        examples: For the message about another one.

    Raises:
        UsageError: A word does not match.
    """
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not re.fullmatch(pattern, part):
            raise UsageError(f"{part!r} is none of {examples}")
    return tuple(dict.fromkeys(parts))
