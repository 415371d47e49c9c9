"""Records the training of a user's script as a run.

Only such scripts import this package, through :class:`accel_engine.RunRecorder`, which needs Keras but not TensorFlow,
and :class:`accel_engine.Recorder`, which needs neither.
"""
