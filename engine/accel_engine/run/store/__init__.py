"""``run.db``: its tables, its queries, and what its rows mean."""
