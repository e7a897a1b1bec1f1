"""Small controlled experiments: does what a paper claims show, in minutes, with seeds paired and rollouts equal?"""

from assay.lab.claim import Claim, claims
from assay.lab.paired import Effect, paired_effect, run_claim

__all__ = ["Claim", "Effect", "claims", "paired_effect", "run_claim"]
