"""What is sent to the terminal, and when, and what of Textual is done in another way for it."""
