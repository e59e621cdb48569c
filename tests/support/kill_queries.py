"""The queries of the kill tests, known to the clients and to the test."""

import random

N_COLUMNS = 3


def query(number):
    rng = random.Random(number)
    return [round(rng.uniform(-3, 3), 3) for _ in range(N_COLUMNS)]
