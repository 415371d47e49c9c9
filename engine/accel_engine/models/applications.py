"""The classifiers of ``keras.applications`` in the catalogue, without their downloaded weights."""

from accel_engine.models.entry import ModelEntry

APPLICATIONS: tuple[ModelEntry, ...] = ()
