"""The secret space: which records each of the m models is trained on."""
