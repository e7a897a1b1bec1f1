"""Weights and optimiser in a checkpoint, written and read in parts by however many ranks there are.

A checkpoint of several ranks has a folder ``shards`` in the format of ``torch.distributed.checkpoint``, beside
``policy``, which is the same model in one piece for whoever reads it. One of a single process has the optimiser in
``trainer.pt``. Either can be continued by any number of ranks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from assay.policies.base import Policy
from assay.scale.sharding import like

SHARDS = "shards"
"""Name of the folder within a checkpoint."""

MASTER = "master"
"""Key in the optimiser's state of a float32 copy of a weight of less precision."""


def save_shards(folder: Path, policy: Policy, optimizer: torch.optim.Optimizer) -> None:
    """Write the weights that are trained and the optimiser's state of each; every rank writes its part."""
    import torch.distributed.checkpoint as dcp

    found: dict[str, Any] = {}
    states = optimizer.state_dict()["state"]
    for index, (name, parameter) in enumerate(_trained(policy, optimizer)):
        found[f"policy/{name}"] = parameter.detach()
        found |= {f"optimizer/{name}/{key}": value for key, value in states.get(index, {}).items()}
    _together(lambda: dcp.save(found, checkpoint_id=folder))


def load_shards(folder: Path, policy: Policy, optimizer: torch.optim.Optimizer, groups: Any) -> None:
    """Read what :func:`save_shards` wrote, each rank its part of it, whatever the number of ranks was then.

    Args:
        folder: see :data:`SHARDS`.
        policy: its trained weights are replaced.
        optimizer: over the policy's weights; its state is replaced.
        groups: ``param_groups`` of the optimiser's state dictionary when it was saved.
    """
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    stored = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    trained = dict(_trained(policy, optimizer))
    found: dict[str, Any] = {}
    for key, what in stored.items():
        weight = trained[_name(key)]
        if not isinstance(what, TensorStorageMetadata):
            found[key] = None
        elif what.size == weight.shape:
            found[key] = torch.zeros_like(weight, dtype=what.properties.dtype, requires_grad=False)
        else:
            found[key] = torch.zeros(what.size, dtype=what.properties.dtype)
    with warnings.catch_warnings():
        # One process reads what many wrote; there is nothing odd about that.
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        _together(lambda: dcp.load(found, checkpoint_id=folder))
    state: dict[int, dict[str, Any]] = {}
    for index, (name, weight) in enumerate(trained.items()):
        saved = found[f"policy/{name}"]
        own = {k.rpartition("/")[2]: v for k, v in found.items() if k.startswith("optimizer/") and _name(k) == name}
        if own:
            state[index] = own
            if saved.dtype != weight.dtype:
                own[MASTER] = saved
        with torch.no_grad():
            weight.copy_(saved)
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def load_whole(state: dict[str, Any], policy: Policy, optimizer: torch.optim.Optimizer) -> None:
    """Give the optimiser the state that one process saved, of which each rank takes its part."""
    trained = _trained(policy, optimizer)
    parts: dict[int, dict[str, Any]] = {}
    for index, own in state["state"].items():
        weight = trained[index][1]
        part = {k: like(v, weight) if isinstance(v, Tensor) else v for k, v in own.items()}
        if MASTER in part and part[MASTER].dtype == weight.dtype:
            with torch.no_grad():
                weight.copy_(part.pop(MASTER))
        parts[index] = part
    optimizer.load_state_dict({**state, "state": parts})


def _together(work: Callable[[], Any]) -> None:
    """Do what ranks do together; where it fails, raise the error of the first that failed.

    torch's own is no ``Exception``, and holds those of all ranks.
    """
    from torch.distributed.checkpoint.api import CheckpointException

    try:
        work()
    except CheckpointException as error:
        raise next(iter(error.failures.values()))[0] from None


def _trained(policy: Policy, optimizer: torch.optim.Optimizer) -> list[tuple[str, Tensor]]:
    """The optimiser's weights, in its order, with their names."""
    names = {id(p): name for name, p in policy.module.named_parameters()}
    return [(names[id(p)], p) for group in optimizer.param_groups for p in group["params"]]


def _name(key: str) -> str:
    """Name of the weight that an entry is of."""
    kind, _, rest = key.partition("/")
    return rest if kind == "policy" else rest.rpartition("/")[0]
