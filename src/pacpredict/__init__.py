"""Private prediction with a proof: PAC-private answers and what they guarantee."""
