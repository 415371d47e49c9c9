"""Colours and characters, and what stands for them where a terminal shows less."""
