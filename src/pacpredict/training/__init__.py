"""The secret space: a pool of records, the subsets of it, and a model trained on each."""
