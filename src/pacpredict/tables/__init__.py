"""A table as its owner has it, and as models take it: columns, canonical rows, labels, files."""
