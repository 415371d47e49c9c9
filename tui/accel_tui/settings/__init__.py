"""The user settings: the file and its validation."""
