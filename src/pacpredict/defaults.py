"""What is taken where nothing is said: one table for the library, the terminal and the experiments."""

from typing import Final

MODELS: Final = 128  # the paper's
STEP_BUDGET: Final = 2.0**-32  # nats per answer, the paper's smallest
# A million contested queries at that: whether a record was trained on is then told in at most 51.08 % of cases, where
# guessing gives 50 %.
QUERIES: Final = 10**6
TOTAL_BUDGET: Final = QUERIES * STEP_BUDGET
RATE: Final = 0.5  # the share of subsets that each record is in
CONSTRUCTION: Final = "balanced"
DECODE: Final = "argmax"
VOTES: Final = "plain"
NOISE: Final = "least"
CHARGING: Final = "adaptive"
WHEN_EXHAUSTED: Final = "halt"
# How far the log-odds of any statement about the training set may move, for the default total: a factor of 1.28. What
# `propose_odds_limit` says for that total; other totals get their own.
ODDS_LIMIT: Final = 0.25
ODDS_DELTA: Final = 1e-9  # the probability, over a life, that Gaussian noise passes that
LEARNER: Final = "xgboost"
TUNE: Final = "none"
TUNE_FOR: Final = "accuracy"
MIN_CATEGORY: Final = 10  # units that must have a category for it to be listed
