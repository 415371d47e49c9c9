"""How amounts read, on screens, in commands and in errors."""
