"""Frozen public features: from one image or text to numbers, by something that never saw the training data."""
