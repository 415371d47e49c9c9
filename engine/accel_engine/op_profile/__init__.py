"""Reduces a trace of TensorFlow's profiler to the operations that take the time; needs no TensorFlow."""
