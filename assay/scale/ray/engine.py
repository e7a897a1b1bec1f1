"""Generation on Ray actors, each an engine with a copy of the policy's weights.

How weights travel: the policy is packed once into blocks of bytes. With ``scale.weights = "store"`` these go into
Ray's object store; every engine reads them from there, on this machine as shared memory, on another after one transfer
between the two stores. With ``"broadcast"`` they go to all engines that are ready at once, see
:mod:`assay.scale.ray.broadcast`, and those that are not, or that did not get them whole, have the store. Nothing is
written to disk unless the store is smaller than the weights, when Ray spills it. The blocks stay, in the store or in
this process's memory, until the next ones come, so that an engine that replaces a dead one gets exactly those the
others have, even while the policy is being updated.
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
from assay.policies.base import Policy
from assay.policies.loading import ModelConfig
from assay.registry import find
from assay.scale.ray.cluster import Cluster
from assay.scale.ray.crew import Crew
from assay.scale.ray.gpus import RESERVE
from assay.scale.ray.parts import outside, register
from assay.types import Episode

MEMORY_SHARE = "gpu_memory_utilization"
"""Option of engines that take a share of a GPU's memory for a copy of the weights, keys and values."""
OWN_SHARE = 1 - RESERVE
"""That share of a GPU which an engine has to itself, unless the recipe says another."""
TORN = -1
"""Version of weights of which only some have come."""
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
        self._broadcast: Any = None
        self._layout: tuple[Any, ...] | None = None
        asked = dict(spec) if isinstance(spec, Mapping) else {"name": spec}
        if cluster.own_gpus and MEMORY_SHARE in signature(find("engine", asked["name"])).parameters:
            asked = {MEMORY_SHARE: OWN_SHARE, **asked}
        description = (asked, plain(model), max_rows, seed)
        made_here = outside("engine")
        self.crew = Crew(cluster, "engine", EngineActor, lambda: (description, made_here), 0, cluster.scale.engines)

    def follow(self, policy: Policy) -> None:
        """Send the policy's weights as they are now. They are copied before this returns; engines load them beside."""
        from assay.scale.ray.weights import Block, packed

        with self._lock:
            self.version += 1
            version, sender = self.version, self._sender(policy)
            self.cluster.check()
            kept, layout = Kept(self.cluster), list[Any]()
            for what, data in packed(policy.merged_state(), device=sender.device if sender else "cpu"):  # type: ignore[attr-defined]
                if sender is not None and self._layout is not None:
                    if not layout:
                        sender.begin(self.crew.ready(), version, self._layout)
                    sender.send(data)
                kept.add(Block(what, data.cpu().numpy()), stored=sender is None)
                layout.append(what)
            reached = sender.end() if sender is not None else []
            self._layout = tuple(layout)
            # References inside a list are passed on as they are: an engine fetches one block after the other.
            self.crew.prepare(lambda engine: engine.take.remote(version, kept.references()), reached)

    def _sender(self, policy: Any) -> Any:
        """What broadcasts, if weights are to be."""
        if self.cluster.scale.weights == "broadcast" and self._broadcast is None:
            from assay.scale.ray.broadcast import Sender

            self._broadcast = Sender(self.cluster, policy.device.type)
        return self._broadcast

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
        if self._broadcast is not None:
            self._broadcast.close()
        self.crew.close()
        self.cluster.close()


class Kept:
    """The blocks of the latest weights, in this process's memory until somebody takes them from the store.

    Args:
        cluster: whose store it is.
    """

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.held: list[Any] = []

    def add(self, block: Any, stored: bool) -> None:
        """Keep a block, at once in the store or here."""
        self.held.append(self._put(block) if stored else block)

    def references(self) -> list[Any]:
        """Return a reference to each block in the store.

        Raises:
            LostCluster: the cluster has gone.
        """
        kind = self.cluster.ray.ObjectRef
        self.held = [kept if isinstance(kept, kind) else self._put(kept) for kept in self.held]
        return self.held

    def _put(self, block: Any) -> Any:
        try:
            return self.cluster.ray.put(block)
        except (self.cluster.ray.exceptions.RayError, OSError) as error:
            self.cluster.blame(error)


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
        self.group: Any = None

    def start(self) -> None:
        """Make the engine. Not in the constructor, whose errors Ray takes for deaths."""
        if self.engine is not None:
            return
        from assay.engines.base import Follower, engine_of
        from assay.policies.policy import load_policy

        register("engine", self.parts)
        spec, model, max_rows, seed = self.description
        self.policy = load_policy(ModelConfig.model_validate(model), seed)
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

        from assay.scale.ray.weights import Sent

        self.start()
        self._load(Sent([ray.get(block) for block in blocks]))  # no copies: the machine's engines share them there
        self.version = version
        return version

    def receives_on(self) -> str:
        """The device on which it wants broadcast weights: ``cpu`` or ``cuda``."""
        return "cpu" if getattr(self.engine, "through_host", False) else str(self.policy.device.type)

    def meet(self, meeting: Any, rank: int) -> bool:
        """Join the others of a broadcast; return whether they were there."""
        from assay.scale.ray.broadcast import Group

        self._part()
        try:
            self.group = Group(meeting, rank)
        except RuntimeError:
            return False
        return True

    def receive(self, version: int, layout: Sequence[Any]) -> bool:
        """Load weights ``version`` as they are broadcast.

        Returns:
            False if they did not come whole: this engine answers nothing until it has taken some.
        """
        from assay.scale.ray.broadcast import Arriving

        if self.group is None:
            return False
        arriving, self.version, whole = Arriving(layout, self.group), TORN, False
        try:
            self._load(arriving)
            whole = not arriving.lost
        finally:
            if not whole:
                self._part()
        if whole:
            self.version = version
        return whole

    def _part(self) -> None:
        group, self.group = self.group, None
        if group is not None:
            group.close()

    def _load(self, sent: Any) -> None:
        """Give the engine what was sent."""
        from assay.scale.ray.weights import check, take

        if self.by_name:
            check(sent.layout, self.shapes)
            self.engine.follow(sent)
        else:
            take(self.policy.model, sent.merged_state())
            if self.follows:
                self.engine.follow(self.policy)

    def generate(self, version: int, requests: Sequence[Request]) -> bytes:
        """Answer with weights ``version``. Pickled here, since arrays that Ray hands over are read-only."""
        if version != self.version:
            raise RunError(f"an engine with weights {self.version} was asked for answers of weights {version}")
        return pickle.dumps(self.engine.generate(requests))


def plain(model: ModelConfig) -> dict[str, Any]:
    """The model an actor loads: without adapters, whose part in the weights is sent with them, on its own device."""
    changes: dict[str, Any] = {"lora": None, "quantise": None, "gradient_checkpointing": False}
    if model.device != "cpu":
        changes["device"] = "auto"
    return model.model_copy(update=changes).model_dump(mode="json")
