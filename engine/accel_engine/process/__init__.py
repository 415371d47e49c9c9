"""The engine process, one for every run: see its ``__main__``."""
