"""All models at once: packed trees, stacked linear models."""
