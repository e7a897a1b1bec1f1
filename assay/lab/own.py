"""A claim of one's own, in a TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path

from assay.catalogue.claim import Claim
from assay.errors import UsageError
from assay.registry import call


def claim_in(path: Path) -> Claim:
    """Return the claim that a file makes; in place of a paper it is called by the file's name.

    ::

        text = "Without the group's deviation a policy is fooled less."
        setting = "noisy_bandit"            # `assay lab settings` lists them; or "file.py:Setting"
        measure = "final"
        better = "plain"
        baseline = "grpo"
        arms.plain = {credit = {name = "grpo", normalise = false}}
        arms.grpo = {}
        options.steps = 100
        sweep.lr = [0.3, 1.0, 3.0]

    Raises:
        UsageError: the file cannot be read, lacks something, or says what no claim has.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as TOML: {error}") from None
    claim: Claim = call(Claim, data, f"claim {path}", {"paper": path.stem})
    for arm in (claim.better, claim.baseline):
        if arm not in claim.arms:
            raise UsageError(f"claim {path} compares arm {arm!r}, which it does not have: {', '.join(claim.arms)}")
    if claim.better == claim.baseline:
        raise UsageError(f"claim {path} compares arm {claim.better!r} with itself")
    return claim
