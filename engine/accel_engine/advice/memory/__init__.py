"""Rules of advice on the memory of runs."""

from accel_engine.advice.rule import Rule

RULES: tuple[Rule, ...] = ()
