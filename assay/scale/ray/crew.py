"""Actors of one kind that are kept at their number: who dies is replaced, what it was doing is asked again."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from assay.errors import AssayError, RunError
from assay.scale.ray.cluster import Cluster, LostCluster

LIMIT = 5
"""Deaths in a row beyond one each, with nothing finished in between, after which a crew gives up."""
PATIENCE = 600.0
"""Seconds without anything finished, or anybody starting, after which a crew gives up."""


@dataclass(slots=True, eq=False)
class Member:
    """One actor: its place, its handle, and the call that makes it ready for work, until that has returned."""

    place: int
    handle: Any
    preparing: Any


class Crew:
    """``size`` actors that share work: each takes the next piece when it has done its last.

    A piece is done when its result is here; the death of an actor costs the piece it was on another try, and the
    actor's replacement is made ready as the others were. Safe to use from any thread; one call at a time.

    Args:
        cluster: where the actors are.
        name: what one of them is called in messages.
        kind: their class.
        arguments: of its constructor.
        first: the first of their places in the cluster.
        size: how many.
    """

    def __init__(
        self, cluster: Cluster, name: str, kind: type, arguments: Callable[[], tuple[Any, ...]], first: int, size: int
    ):
        self.cluster, self.name, self.kind, self.arguments = cluster, name, kind, arguments
        self.first, self.size = first, size
        self.members: list[Member] = []
        self.deaths = 0
        self._in_a_row = 0
        self._prepare: Callable[[Any], Any] = lambda handle: handle.start.remote()
        self._lock = threading.RLock()

    def start(self) -> None:
        """Hire those that are missing; nothing is waited for."""
        with self._lock:
            while len(self.members) < self.size:
                self._hire(len(self.members))

    def prepare(self, call: Callable[[Any], Any], but: Collection[Any] = ()) -> None:
        """Have every actor make ``call(handle)``, a reference to what it returns, before any further piece.

        So has every one that comes later; those of these handles have done as much already. Nothing is waited for: who
        fails is seen by :meth:`run`.
        """
        with self._lock:
            self._prepare = call
            for member in self.members:
                member.preparing = None if member.handle in but else call(member.handle)

    def ready(self) -> list[Any]:
        """Return the handles of those that are ready for work; nothing is waited for, and nobody is looked after."""
        with self._lock:
            ray = self.cluster.ray
            for member in self.members:
                if member.preparing is not None and self.cluster.wait([member.preparing], 0):
                    with suppress(ray.exceptions.RayError):  # told by run
                        ray.get(member.preparing)
                        member.preparing = None
            return [member.handle for member in self.members if member.preparing is None]

    def run(
        self,
        pieces: Sequence[Any],
        ask: Callable[[Any, Any], Any],
        give_up: Callable[[Any, str], Any] | None = None,
        tries: int = LIMIT,
        done: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        """Return ``ask(handle, piece)`` of every piece, in order.

        Args:
            pieces: what is to be done.
            ask: sends a piece to an actor; returns the reference to what it will return.
            give_up: gives a piece's result, told why, after its actors died ``tries`` times or its call raised; without
                it that is an error.
            tries: see above.
            done: told of each piece that an actor has done, by number, and of what it returned.

        Raises:
            LostCluster: the cluster has gone.
            RunError: too many deaths in a row; nobody could start; a call raised something unforeseen.
            AssayError: what a call raised, if of that kind.
        """
        with self._lock:
            ray = self.cluster.ray
            self.start()
            todo, results = deque(range(len(pieces))), [None] * len(pieces)
            failed = [0] * len(pieces)
            running: dict[Any, tuple[Member, int | None]] = {}

            def next_for(member: Member) -> None:
                if member.preparing is not None:
                    running[member.preparing] = member, None
                elif todo:
                    i = todo.popleft()
                    running[ask(member.handle, pieces[i])] = member, i

            for member in self.members:
                next_for(member)
            left = len(pieces)
            while left:
                ready = self.cluster.wait(list(running), PATIENCE)
                if not ready:
                    raise RunError(
                        f"none of {self.size} {self.name}s finished or started anything within {PATIENCE:g} s; "
                        f"{self._free()}"
                    )
                for ref in ready:
                    member, piece = running.pop(ref)
                    try:
                        found = ray.get(ref)
                    except ray.exceptions.RayActorError as error:
                        self.cluster.look()
                        if piece is not None:
                            failed[piece] += 1
                            if give_up is not None and failed[piece] >= tries:
                                results[piece], left = give_up(pieces[piece], self._why(error)), left - 1
                            else:
                                todo.appendleft(piece)
                        member = self._replace(member, error)
                    except ray.exceptions.RayTaskError as error:
                        cause = error.cause if isinstance(error.cause, AssayError) else None
                        if piece is None or give_up is None:
                            why = str(error).strip().splitlines()[-1]
                            raise cause or RunError(f"{self.name} {member.place} failed: {why}") from None
                        results[piece], left = give_up(pieces[piece], str(cause or error.cause)), left - 1
                    except ray.exceptions.RayError as error:
                        self.cluster.blame(error)
                    else:
                        self._in_a_row = 0
                        if piece is None:
                            member.preparing = None
                        else:
                            results[piece], left = found, left - 1
                            if done is not None:
                                done(piece, found)
                    next_for(member)
            return results

    def _hire(self, place: int) -> Member:
        handle = self.cluster.hire(self.kind, self.first + place, *self.arguments())
        member = Member(place, handle, self._prepare(handle))
        self.members[place : place + 1] = [member]
        return member

    def _replace(self, member: Member, error: Exception) -> Member:
        """Put a new actor in a dead one's place, unless too many have died."""
        why = self._why(error)
        self.deaths += 1
        self._in_a_row += 1
        what = f"{self.name} {member.place}"
        if self._in_a_row > LIMIT + self.size:
            raise RunError(f"{self._in_a_row} {self.name}s died in a row, {what} last ({why}); Ray's logs say more")
        self.cluster.faults.died(what, why, "another takes its place")
        self.cluster.dismiss(member.handle)
        return self._hire(member.place)

    @staticmethod
    def _why(error: Exception) -> str:
        """A few words of Ray's long account of a death."""
        text = str(error)
        for cause, words in (
            ("node was terminated", "its machine left the cluster"),
            ("its node has died", "its machine left the cluster"),
            ("node has crashed", "its machine left the cluster"),
            ("unavailable", "its process does not answer"),
            ("OOM", "its machine ran out of memory"),
        ):
            if cause in text.split("Some common causes")[0]:
                return words
        detail = text.partition("Worker exit detail: ")[2].partition(". ")[0]
        if "connection error" in detail:
            return "its process ended unexpectedly"
        return " ".join(detail.split()) or text.strip().splitlines()[0]

    def _free(self) -> str:
        try:
            free = self.cluster.ray.available_resources()
        except Exception as error:  # the cluster itself may be what fails
            return f"the cluster does not say what is free: {error}"
        return f"free in the cluster are {free.get('CPU', 0):g} processors and {free.get('GPU', 0):g} GPUs"

    def close(self) -> None:
        """End every actor."""
        with self._lock, suppress(LostCluster):
            members, self.members = self.members, []
            if self.cluster.ray.is_initialized():
                for member in members:
                    self.cluster.dismiss(member.handle)
