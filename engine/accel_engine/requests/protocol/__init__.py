"""How an engine process is asked, whatever it is asked."""
