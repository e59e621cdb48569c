"""Ledgers that survive the process: what was released, charged and believed, on disk before anyone sees it."""
