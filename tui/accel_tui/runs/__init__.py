"""Several runs: the columns of their list, finding them, and what differs between them; no widgets."""
