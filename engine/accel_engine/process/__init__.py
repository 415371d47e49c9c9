"""The engine process, one per run; see ``__main__``."""
