"""Measures latency and throughput of anything that serves requests; without TensorFlow."""
