"""Small subsets, and weights over them, for tests of priors."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

memberships = st.integers(1, 7).flatmap(
    lambda m: st.integers(1, 6).flatmap(lambda n: hnp.arrays(np.bool_, (m, n)))
)
seeds = st.integers(0, 2**32 - 1)


def random_weights(m, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(m))
