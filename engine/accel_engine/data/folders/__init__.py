"""Reads folders of files: images, masks, audio and text, by class."""
