"""What a run over several ranks is made with, and what it cannot have."""

from __future__ import annotations

from assay.config import RunConfig
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.masked import Masked
from assay.scale.ranks import Ranks, join


def joined(config: RunConfig) -> Ranks:
    """Return the ranks a configuration asks for, once all of them are there; see :func:`assay.scale.ranks.join`."""
    return join(config.scale.trainers, device_type(config.model.device))


def device_type(device: str) -> str:
    """``cpu`` or ``cuda``, of ``model.device``; asks no device anything, which would take the first one's memory."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device.partition(":")[0]


def check_sharding(config: RunConfig, method: Method, ranks: Ranks) -> None:
    """Raise UsageError for what does not work where the policy is sharded."""
    if ranks.size == 1:
        return
    with_one = f"with scale.trainers = {ranks.size}; set scale.trainers=1"
    if ":" in config.model.device:
        raise UsageError(
            f"model.device = {config.model.device!r} is one device; each trainer takes its own, write cuda"
        )
    if config.train.optimizer == "adamw8bit":
        raise UsageError(f'train.optimizer = "adamw8bit" keeps moments that cannot be sharded {with_one}')
    if config.overlap.staleness and config.engine.name == "hf" and not config.scale.engines:
        raise UsageError(f"overlap.staleness with engine hf needs a second copy of the whole model {with_one}")
    if any(getattr(need, "teacher", None) == "trust_region" for need in method.needs):
        raise UsageError(f"a teacher in a trust region adds the logits of two models, which are sharded, {with_one}")
    for learner in method.learners:
        if isinstance(learner, Masked):
            raise UsageError(f"objective masked watches whole gradients, which no trainer has {with_one}")
        if getattr(learner, "trains_model", False):
            raise UsageError(f"{type(learner).__name__} trains a second model, which is not sharded, {with_one}")


def quieted(config: RunConfig, ranks: Ranks) -> RunConfig:
    """Return the configuration of a rank: what only one of them is to do at the end of a run, the first does."""
    return config if ranks.first else config.model_copy(update={"run": config.run.model_copy(update={"report": False})})
