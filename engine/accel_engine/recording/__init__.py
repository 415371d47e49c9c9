"""Records the ``fit`` of a user's script as a run.

Only such scripts import this package, through :class:`accel_engine.RunRecorder`. It needs Keras, not TensorFlow.
"""
