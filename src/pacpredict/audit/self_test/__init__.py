"""Statistical self-test: sessions of the mechanism, scored by an auditor who knows their secrets."""
