"""The pictures and layers of a trained model."""
