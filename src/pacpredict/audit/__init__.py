"""The strongest attacks there are, against the real thing, beside what is promised."""
