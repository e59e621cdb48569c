"""Retrained worlds: ensembles of pools that have, or lack, some records, and what attackers make of their answers."""
