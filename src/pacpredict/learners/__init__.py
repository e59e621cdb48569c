"""Learners: how a model is trained, how it is stored, and how all m of them vote fast."""
