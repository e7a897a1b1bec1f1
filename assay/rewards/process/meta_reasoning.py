"""What a turn earns by the kind of thought it names: planning, exploring, reflecting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.environments.lines import read_action
from assay.errors import UsageError
from assay.ops.turns import own_turns
from assay.registry import part
from assay.rewards.wrapped import Around, terms_of, valid_in
from assay.types import Turn


@part("reward", "meta_reasoning")
class MetaReasoning(Around):
    """R_i of the inner reward, and r_it on the last own token of each turn t, by its tag.

    - ``planning``: r = planning, if the response succeeded (R_i > 0);
    - ``explore``: r = explore, if the action is none of the trajectory's earlier ones;
    - ``reflection``: r = reflection, if the turn before failed, or there is none, and its action was another;
    - other tags, and turns without one, earn nothing.

    Tags are those of the turns, as rollout ``tagged_turns`` notes them; a turn without one has no action that counts.
    A turn failed if it has no tag or its action could not be taken. Actions are what stands in ``<action>``, or the
    last line; that they can be taken is not asked of them. Terms: the inner reward's, ``planning``, ``explore`` and
    ``reflection``, the mean of r over the turns of that tag, and ``repeated``, the share of valid turns whose action
    was an earlier valid one.

    Source: RLVMR (arXiv 2507.22844) and its authors' code.

    Args:
        inner: the reward R.
        planning, explore, reflection: see above.

    Raises:
        UsageError: one of them is below 0.
    """

    def __init__(self, inner: Any = "verdict", planning: float = 1.0, explore: float = 1.0, reflection: float = 1.0):
        if min(planning, explore, reflection) < 0:
            raise UsageError("reward 'meta_reasoning': planning, explore and reflection must be at least 0")
        super().__init__({"outcome": inner})
        self.worth = {"planning": planning, "explore": explore, "reflection": reflection}

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        values, dtype = found["outcome"].values, batch.rewards.dtype
        tokens = torch.zeros(batch.mask.shape, dtype=dtype)
        terms = {name: torch.zeros(len(batch), dtype=dtype) for name in (*self.worth, "repeated")}
        for i, episode in enumerate(batch.episodes):
            turns = own_turns(episode)
            kept = earned(turns, bool(values[i] > 0))
            for turn, fit in zip(turns, kept, strict=True):
                own = batch.mask[i, turn.start : turn.end].nonzero()
                if fit and turn.tag in self.worth and len(own):
                    tokens[i, turn.start + own[-1, 0]] += self.worth[turn.tag]
            for name, worth in self.worth.items():
                tagged = [fit for turn, fit in zip(turns, kept, strict=True) if turn.tag == name]
                terms[name][i] = worth * sum(tagged) / max(1, len(tagged))
            terms["repeated"][i] = repeated(turns)
        return Reward(values, tokens, valid_in(found, batch), {**terms_of(found), **terms})


def earned(turns: Sequence[Turn], success: bool) -> list[bool]:
    """Return of each turn whether it did what its tag says, see :class:`MetaReasoning`."""
    out, before = [], set[str]()
    for t, turn in enumerate(turns):
        action, last = read_action(turn.text), turns[t - 1] if t else None
        fits = {
            "planning": success,
            "explore": action not in before,
            "reflection": last is None or (failed(last) and read_action(last.text) != action),
        }
        out.append(fits.get(turn.tag or "", False))
        if turn.tag is not None:
            before.add(action)
    return out


def failed(turn: Turn) -> bool:
    """Return whether a turn did not keep the form, or its action could not be taken."""
    return turn.tag is None or not turn.valid


def repeated(turns: Sequence[Turn]) -> float:
    """Return the share of valid turns whose action was that of an earlier valid one."""
    actions = [read_action(turn.text) for turn in turns if turn.valid and turn.text]
    return 1 - len(set(actions)) / len(actions) if actions else 0.0
