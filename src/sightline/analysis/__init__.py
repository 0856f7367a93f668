"""The papers' experiments on trained captioners: each a function that gives one table."""
