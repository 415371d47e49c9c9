"""How amounts, names and states are put for people."""
