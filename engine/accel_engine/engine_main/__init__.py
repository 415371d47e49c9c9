"""What runs in an engine process: training, answering requests, trying plans."""
