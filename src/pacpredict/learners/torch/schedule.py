"""Learning rates as functions of the step, counted from 0."""

from collections.abc import Callable, Sequence

Rate = Callable[[int], float]


def falling(start: float, factor: float, epochs: Sequence[int], steps_per_epoch: int) -> Rate:
    """Multiply the rate by `factor` when each of the epochs begins."""

    def rate(step: int) -> float:
        epoch = step // steps_per_epoch
        return float(start * factor ** sum(epoch >= at for at in epochs))

    return rate


def warming_up(peak: float, n_warm: int, n_steps: int) -> Rate:
    """Rise to `peak` in `n_warm` equal steps from 0, then fall in equal steps that would end in 0.

    This is the schedule of transformers' Trainer, `linear`: the first step has rate 0.
    """

    def rate(step: int) -> float:
        if step < n_warm:
            return peak * step / n_warm
        return peak * max(0.0, (n_steps - step) / max(1, n_steps - n_warm))

    return rate
