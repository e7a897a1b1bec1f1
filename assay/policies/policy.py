"""From a recipe's ``[model]`` table to a policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.control.binned import BinnedPolicy
from assay.policies.control.config import ControlConfig
from assay.policies.control.gaussian import GaussianPolicy
from assay.policies.control.policy import ABOUT, ControlPolicy
from assay.policies.flow.config import FlowConfig
from assay.policies.flow.networks import network
from assay.policies.flow.policy import CONFIG, FlowPolicy
from assay.policies.flow.thinking import FLOW, LANGUAGE, ThinkingFlow
from assay.policies.loading import ModelConfig, device_of, sees
from assay.policies.pictures.vision_lm import VisionLM
from assay.registry import build

DECISIONS: dict[str, type[ControlPolicy]] = {"gaussian": GaussianPolicy, "bins": BinnedPolicy}


def load_policy(config: ModelConfig, seed: int = 0) -> Any:
    """Return the policy of a model: a :class:`~assay.policies.causal_lm.CausalLM`, one that sees pictures where the
    model does, a flow, or one that acts by numbers.

    Raises:
        UsageError: see :func:`assay.policies.loading.load_model`; of ``control``, its environment has no numbers.
    """
    if thinks(config):
        return _thinking(config, seed)
    if draws(config):
        return _flow(config, seed)
    if acts(config):
        return _control(config, seed)
    return (VisionLM if sees(config) else CausalLM).load(config, seed)


def draws(config: ModelConfig) -> bool:
    """Whether a recipe's model is a flow, after thoughts or not."""
    return config.source == "flow" or (Path(config.source).expanduser() / CONFIG).is_file() or thinks(config)


def thinks(config: ModelConfig) -> bool:
    """Whether a recipe's model is a flow that draws after a language model's thoughts."""
    folder = Path(config.source).expanduser() / FLOW
    return (config.source == "flow" and bool(config.flow.language)) or (folder / CONFIG).is_file()


def _thinking(config: ModelConfig, seed: int) -> ThinkingFlow:
    if config.source == "flow":
        language, drawing = config.flow.language, config.source
    else:
        language, drawing = (str(Path(config.source).expanduser() / part) for part in (LANGUAGE, FLOW))
    of_flow = config.model_copy(update={"lora": None, "gradient_checkpointing": False, "source": drawing})
    flow = _flow(of_flow, seed)
    return ThinkingFlow(load_policy(config.model_copy(update={"source": language}), seed), flow)


def acts(config: ModelConfig) -> bool:
    """Whether a recipe's model is a policy of numbers."""
    return config.source == "control" or (Path(config.source).expanduser() / ABOUT).is_file()


def _plain(config: ModelConfig, what: str) -> None:
    """Raise UsageError for what a model of language alone has."""
    odd = [name for name in ("lora", "quantise") if getattr(config, name) is not None]
    odd += [name for name in ("compile", "freeze_vision", "gradient_checkpointing") if getattr(config, name)]
    odd += ["dtype"] if config.dtype != "float32" else []
    if odd:
        raise UsageError(f"model.{odd[0]}: {what} has none of that, and learns in float32; leave it out")


def _control(config: ModelConfig, seed: int) -> ControlPolicy:
    _plain(config, "a policy of numbers")
    folder = None if config.source == "control" else Path(config.source).expanduser()
    if folder is None:
        own, world = config.control, build("environment", config.control.environment)
        if not hasattr(world, "sizes"):
            raise UsageError(f"model.control.environment {own.environment!r} is not played by numbers")
        sizes = world.sizes()
    else:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        own, sizes = ControlConfig(**about["config"]), tuple(about["sizes"])
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        policy = DECISIONS[own.decisions](own, sizes, device_of(config))
    if folder is not None:
        policy.load_weights(folder)
    return policy


def _flow(config: ModelConfig, seed: int) -> FlowPolicy:
    _plain(config, "a flow")
    if config.source == "flow":
        return FlowPolicy(config.flow, network(config.flow, seed), device_of(config))
    folder = Path(config.source).expanduser()
    own = FlowConfig(**json.loads((folder / CONFIG).read_text(encoding="utf-8")))
    policy = FlowPolicy(own, network(own, seed), device_of(config))
    policy.load_weights(folder)
    return policy
