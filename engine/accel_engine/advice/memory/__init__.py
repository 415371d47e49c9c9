"""Rules of advice on the memory of runs."""

from accel_engine.advice.memory.pressure import near_limit, out_of_memory
from accel_engine.advice.rule import Rule

RULES: tuple[Rule, ...] = (out_of_memory, near_limit)
