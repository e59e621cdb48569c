"""The state machine of one deployment: a secret, a belief and a budget turn questions into releases."""
