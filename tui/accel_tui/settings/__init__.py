"""The user settings: the file, its validation and the keymap."""
