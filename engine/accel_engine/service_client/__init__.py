"""Clients of inference services, any program's: as runtimes that take and give arrays; without TensorFlow."""
