"""Rules of advice on models that learn poorly."""

from accel_engine.advice.rule import Rule

RULES: tuple[Rule, ...] = ()
