"""Writes TensorBoard event files of ended and live runs, without TensorFlow."""
