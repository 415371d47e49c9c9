"""What engine processes are asked, and what they answer."""
