"""The learning rate as a function of the step: no state, so nothing to save or resume."""

import math


def learning_rate(step: int, steps: int, peak: float, warmup: float) -> float:
    """η(s): linear up to the peak over the share `warmup` of the steps, then half a cosine to 0.

    Args:
        step: s, with 0 ≤ s < steps. The first step already moves, the last one still does.
        steps: of the whole run.
        peak: the largest rate.
        warmup: a share, 0 ≤ warmup < 1.

    >>> [round(learning_rate(s, 10, 1.0, 0.2), 3) for s in range(10)]
    [0.5, 1.0, 0.99, 0.916, 0.778, 0.598, 0.402, 0.222, 0.084, 0.01]
    """
    rising = warmup * steps
    if step < rising:
        return peak * min(1.0, (step + 1) / rising)
    # The cosine is sampled at the middle of each step: it starts below 1 and ends above 0.
    done = (step + 0.5 - math.ceil(rising)) / max(1, steps - math.ceil(rising))
    return peak * 0.5 * (1 + math.cos(math.pi * done))
