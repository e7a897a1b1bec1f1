"""Returns on a scale that all worlds share."""

from __future__ import annotations

from assay.errors import UsageError


def normalised_return(value: float, random: float, expert: float) -> float:
    """100 (J - J_random) / (J_expert - J_random): 0 for a random policy, 100 for an expert, both in expectation.

    Args:
        value: J, a return or a mean of some.
        random, expert: what those policies have.

    Raises:
        UsageError: an expert that is no better.

    Source: D4RL (arXiv 2004.07219), appendix; D5RL reports on the same scale.
    """
    if not expert > random:
        raise UsageError(f"a return is normalised between a random policy's, {random:g}, and a higher one of an expert")
    return 100 * (value - random) / (expert - random)
