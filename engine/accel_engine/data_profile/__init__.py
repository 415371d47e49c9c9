"""Profiles data: what a bounded sample of its examples is like. Without TensorFlow; reads arrays by row only."""

from accel_engine.data_profile.profile import ProfiledData, profile_data

__all__ = ["ProfiledData", "profile_data"]
