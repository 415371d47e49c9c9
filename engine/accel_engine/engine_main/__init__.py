"""The programs of an engine process: training, answering requests, trying plans."""
