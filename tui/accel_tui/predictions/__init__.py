"""Predictions as rows, objects and files, for the command and the screen."""
