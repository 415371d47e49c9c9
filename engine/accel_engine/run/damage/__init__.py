"""Runs that are damaged, or whose files are overwritten, moved or deleted: saves what is whole."""
