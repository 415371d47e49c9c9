"""Fixtures that train in this process: what is opened here was trained a moment ago."""

from ..training.conftest import gym, laid_out, placed, random_model

__all__ = ["gym", "laid_out", "placed", "random_model"]
