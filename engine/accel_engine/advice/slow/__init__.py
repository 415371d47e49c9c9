"""Rules of advice on runs that are slow."""

from accel_engine.advice.rule import Rule

RULES: tuple[Rule, ...] = ()
