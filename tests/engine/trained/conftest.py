"""Fixtures that train in this process: what is opened here was trained a moment ago."""

from ..training.conftest import gym, placed, random_model

__all__ = ["gym", "placed", "random_model"]
