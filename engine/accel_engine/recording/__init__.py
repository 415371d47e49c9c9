"""Recording a training that a script of the user's does with ``fit``, as a run like any other.

Only such scripts import this package, by :class:`accel_engine.RunRecorder`. It needs Keras and no TensorFlow.
"""
