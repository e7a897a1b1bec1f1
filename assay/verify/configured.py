"""The verifier that a configuration asks for."""

from __future__ import annotations

from assay.config import RunConfig, Spec
from assay.verify.base import Verifier
from assay.verify.isolate.pool import VerifierPool
from assay.verify.make import make_verifier as verifier_of


def make_verifier(config: RunConfig) -> Verifier:
    """Return the verifier a configuration names, or the one that goes by each task's kind."""
    return _made(config, config.tasks.verify)


def make_training_verifier(config: RunConfig) -> Verifier | None:
    """Return the verifier of what is learnt from, ``None`` where the one that measures judges that too."""
    return None if config.tasks.train_verify is None else _made(config, config.tasks.train_verify)


def _made(config: RunConfig, spec: Spec | None) -> Verifier:
    return VerifierPool(spec, config.tasks.verify_workers) if config.tasks.verify_workers else verifier_of(spec)
