"""Reads and changes Keras models, losses and optimizers, for training and for recording; without TensorFlow."""
