"""Generation on Ray actors, each an engine with a copy of the policy's weights.

How weights travel: the policy is packed once, in this process's memory, into Ray's object store; every engine reads
them from there, on this machine as shared memory, on another after one transfer between the two stores. Nothing is
written to disk unless the store is smaller than the weights, when Ray spills it. The packed weights stay in the store
until the next ones come, so that an engine that replaces a dead one gets exactly those the others have, even while
the policy is being updated.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from threading import RLock
from typing import Any

import numpy as np
import torch

from assay.engines.base import Request
from assay.engines.ended import listener
from assay.engines.speaking import Speaking
from assay.errors import RunError
from assay.planning.memory import RESERVE
from assay.policies.base import Policy
from assay.policies.loading import ModelConfig
from assay.registry import find
from assay.scale.ray.cluster import Cluster
from assay.scale.ray.crew import Crew
from assay.scale.ray.parts import outside, register
from assay.types import Episode

MEMORY_SHARE = "gpu_memory_utilization"
"""Option of engines that take a share of a GPU's memory for a copy of the weights, keys and values."""
OWN_SHARE = 1 - RESERVE
"""That share of a GPU which an engine has to itself, unless the recipe says another."""
PARTS = 2
"""Pieces of a call for each engine: more leave less waiting for the slowest, fewer decode more together."""


class RayEngine(Speaking):
    """An engine over several, see :mod:`assay.scale.ray.engine`. Episodes come back in the order of their requests.

    Requests go to engines a few at a time, as these become free. What a request is answered with follows from its seed
    and the weights, so neither the division nor a death changes it. Every piece says which weights it is to be answered
    with, and an engine that has others refuses: weights can be late but never mixed up.

    Args:
        policy: what is trained; it also reads and writes tokens here.
        cluster: joined; has ``scale.engines`` places.
        spec: the engine on each actor, a name or a table.
        model: what the actors load, before they are sent weights.
        max_rows: responses that each decodes together.
        seed: of weights that the actors make.
        parts: see :data:`PARTS`.
    """

    def __init__(
        self,
        policy: Any,
        cluster: Cluster,
        spec: str | Mapping[str, Any],
        model: ModelConfig,
        max_rows: int,
        seed: int = 0,
        parts: int = PARTS,
    ):
        self.policy, self.cluster, self.max_rows, self.parts = policy, cluster, max_rows, parts
        self.version = 0
        self._lock = RLock()
        asked = dict(spec) if isinstance(spec, Mapping) else {"name": spec}
        if cluster.own_gpus and MEMORY_SHARE in signature(find("engine", asked["name"])).parameters:
            asked = {MEMORY_SHARE: OWN_SHARE, **asked}
        description = (asked, plain(model), max_rows, seed)
        made_here = outside("engine")
        self.crew = Crew(cluster, "engine", EngineActor, lambda: (description, made_here), 0, cluster.scale.engines)

    def follow(self, policy: Policy) -> None:
        """Send the policy's weights as they are now. They are copied before this returns; engines load them beside."""
        from assay.scale.ray.weights import blocks

        with self._lock:
            self.version += 1
            version, put = self.version, self.cluster.ray.put
            self.cluster.check()
            try:
                kept = [put(block) for block in blocks(policy.merged_state())]  # type: ignore[attr-defined]
            except (self.cluster.ray.exceptions.RayError, OSError) as error:
                self.cluster.blame(error)
            # References inside a list are passed on as they are: an engine fetches one block after the other.
            self.crew.prepare(lambda engine: engine.take.remote(version, kept))

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        """See :class:`assay.engines.base.Engine`.

        Raises:
            LostCluster: the cluster has gone.
            RunError: too many engines died in a row; :meth:`follow` was never called.
        """
        with self._lock:
            if not self.version:
                raise RunError("the engines were asked before they were given weights")
            version = self.version
            pieces = [requests[i] for i in self._divide(requests)]
            made: dict[int, list[list[Episode]]] = {}

            def done(i: int, found: bytes) -> None:
                made[i] = pickle.loads(found)
                if (hear := listener()) is not None:
                    for request, episodes in zip(pieces[i], made[i], strict=True):
                        for episode in (e for e in episodes if e.stop != "error"):
                            hear(request, episode.text)

            self.crew.run(pieces, lambda engine, piece: engine.generate.remote(version, piece), done=done)
        return [episodes for i in range(len(pieces)) for episodes in made[i]]

    def _divide(self, requests: Sequence[Request]) -> list[slice]:
        """Consecutive requests, about as many responses in each piece, and no more than an engine takes at once."""
        rows = np.array([r.n for r in requests])
        most = min(self.max_rows, max(1, -(-int(rows.sum()) // (self.crew.size * self.parts))))
        pieces, start, held = [], 0, 0
        for i, n in enumerate(rows):
            if i > start and held + n > most:
                pieces.append(slice(start, i))
                start, held = i, 0
            held += n
        return [*pieces, slice(start, len(rows))] if len(rows) else []

    def close(self) -> None:
        """End the actors and leave the cluster."""
        self.crew.close()
        self.cluster.close()


class EngineActor:
    """One engine on an actor, with a policy of its own that never learns.

    An engine that keeps weights of its own and takes them ``by_name`` is handed what was sent; the policy's are dropped
    as soon as the engine is made, and tokenizer and architecture are all that is left of it.
    """

    def __init__(
        self, description: tuple[dict[str, Any], dict[str, Any], int, int], parts: Mapping[str, Callable[..., Any]]
    ):
        self.description, self.parts = description, parts
        self.version = 0
        self.engine: Any = None

    def start(self) -> None:
        """Make the engine. Not in the constructor, whose errors Ray takes for deaths."""
        if self.engine is not None:
            return
        from assay.engines.base import Follower, engine_of
        from assay.policies.causal_lm import CausalLM

        register("engine", self.parts)
        spec, model, max_rows, seed = self.description
        self.policy = CausalLM.load(ModelConfig.model_validate(model), seed)
        self.policy.module.requires_grad_(False).eval()
        if MEMORY_SHARE in spec:
            # The engine puts its own copy where this one was loaded, and asks for nearly all of that memory.
            self.policy.module.to("cpu")
            if torch.cuda.is_initialized():
                torch.cuda.empty_cache()
        self.engine = engine_of(self.policy, spec, max_rows)
        self.follows = isinstance(self.engine, Follower)
        self.by_name = self.follows and getattr(self.engine, "by_name", False)
        if self.by_name:
            self.shapes = {name: tuple(weight.shape) for name, weight in self.policy.merged_state()}
            self.policy.module.to("meta")

    def take(self, version: int, blocks: Sequence[Any]) -> int:
        """Load the weights in these blocks, the ``version``-th that were sent."""
        import ray

        from assay.scale.ray.weights import Sent, take

        self.start()
        sent = Sent([ray.get(block) for block in blocks])  # no copies: they stay where the machine's engines share them
        if self.by_name:
            sent.check(self.shapes)
            self.engine.follow(sent)
        else:
            take(self.policy.model, sent.merged_state())
            if self.follows:
                self.engine.follow(self.policy)
        self.version = version
        return version

    def generate(self, version: int, requests: Sequence[Request]) -> bytes:
        """Answer with weights ``version``. Pickled here, since arrays that Ray hands over are read-only."""
        if version != self.version:
            raise RunError(f"an engine with weights {self.version} was asked for answers of weights {version}")
        return pickle.dumps(self.engine.generate(requests))


def plain(model: ModelConfig) -> dict[str, Any]:
    """The model an actor loads: without adapters, whose part in the weights is sent with them, on its own device."""
    changes: dict[str, Any] = {"lora": None, "gradient_checkpointing": False}
    if model.device != "cpu":
        changes["device"] = "auto"
    return model.model_copy(update=changes).model_dump(mode="json")
