"""Small controlled experiments: does what a paper claims show, in minutes, with seeds paired and rollouts equal?"""

from assay.catalogue.claim import Claim, claims
from assay.lab.paired import run_claim

__all__ = ["Claim", "claims", "run_claim"]
