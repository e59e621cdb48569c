"""The paper's mathematics as pure functions: no I/O, no clock, no global random state.

Letters of the paper (m models, d classes, b nats per step, B nats in total, p belief, S secret) live
only in this folder, beside the number of the equation. Information is in nats throughout.
"""
