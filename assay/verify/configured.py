"""The verifier that a configuration asks for."""

from __future__ import annotations

from assay.config import RunConfig
from assay.verify.base import Verifier
from assay.verify.isolate.pool import VerifierPool
from assay.verify.make import make_verifier as verifier_of


def make_verifier(config: RunConfig) -> Verifier:
    """Return the verifier a configuration names, or the one that goes by each task's kind."""
    if config.tasks.verify_workers:
        return VerifierPool(config.tasks.verify, config.tasks.verify_workers)
    return verifier_of(config.tasks.verify)
