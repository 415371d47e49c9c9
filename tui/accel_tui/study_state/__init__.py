"""The state of a search, folded from its study's database, and what follows from it, without widgets."""
