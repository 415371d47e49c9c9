"""Reads data that other libraries prepared: TFRecord, TensorFlow Datasets, Hugging Face."""
