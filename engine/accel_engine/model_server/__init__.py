"""Serves a trained model over HTTP and gRPC; without TensorFlow, but for a SavedModel in its back end."""
