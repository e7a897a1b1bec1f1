"""How well scores that a policy gives to its own responses tell right from wrong."""

from __future__ import annotations

from collections.abc import Sequence


def self_verification(scores: Sequence[float], right: Sequence[bool], threshold: float = 0.5) -> dict[str, float]:
    """Return how often a score agrees with the verifier.

    A response counts as called right if its score is above ``threshold``. ``right`` and ``wrong`` are the shares of
    right and wrong responses that are called so, ``accuracy`` is over both, ``f1`` the harmonic mean of ``right`` and
    ``wrong``, 0 if either is. What there are no responses for is left out.

    Source: LaSeR (arXiv 2510.14943), self-verification F1.

    Args:
        scores: one for each response.
        right: the verifier's verdicts.
        threshold: see above.

    Raises:
        ValueError: not as many scores as verdicts.
    """
    called = [score > threshold for score in scores]
    pairs = list(zip(called, right, strict=True))
    out = {}
    for name, kind in (("right", True), ("wrong", False)):
        mine = [call is kind for call, true in pairs if true is kind]
        if mine:
            out[name] = sum(mine) / len(mine)
    if pairs:
        out["accuracy"] = sum(call is true for call, true in pairs) / len(pairs)
    if {"right", "wrong"} <= out.keys():
        both = out["right"] + out["wrong"]
        out["f1"] = 2 * out["right"] * out["wrong"] / both if both else 0.0
    return out
