"""Measures the inference of trained models, on each device, in each precision, with XLA and without."""
