"""Kinds of rows: tables, and whole values (images, texts), each with a canonical form and a digest."""
