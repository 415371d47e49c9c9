"""Trains with several processes: workers, parameter servers and their coordinator."""
