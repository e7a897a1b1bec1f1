"""S135: responses taken up again at the tokens where the policy was least sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Engine, Request, Sampling
from assay.errors import RunError, UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.registry import part
from assay.rewards.base import RewardPart
from assay.rewards.outcome.verdict import VerdictReward
from assay.rewards.shaping.weighted import WeightedSum
from assay.rollout.single_turn import SingleTurn, full_prompt
from assay.select.dynamic import DynamicSampling
from assay.types import Ask, Episode, Group


@paper(
    "S135",
    "CURE",
    arxiv="2508.11016",
    seams=["rollout", "select", "objective"],
    essentials={
        "stage 1: a critical token is drawn from the K of highest entropy of a first response": "test_positions",
        "prompt and prefix before that token are concatenated again, and the rest is sampled anew from it on": (
            "test_the_prefix_of_a_language_model_is_taken_over_token_by_token"
        ),
        "of n1 first responses each has n2 continuations": "test_a_group_is_new_responses_and_continuations_of_them",
        "first responses and continuations are one group; the loss of a continuation begins at its token": (
            "test_advantages_are_over_new_responses_and_continuations_together"
        ),
        "both stages are DAPO: clip-higher, dual clip, mean over tokens, dynamic sampling, overlong penalty": (
            "test_the_default_is_dapo_with_branches"
        ),
        "stage 2 learns from plain responses, from the weights of stage 1": (
            "test_in_training_stage_two_goes_on_where_stage_one_ended"
        ),
    },
    choices=(
        "a first token is never a critical one, nor one of fewer than two characters, as in the authors' code",
        "where no token is a candidate the response is sampled anew as a whole",
        "when to go from stage 1 to stage 2 is the user's: a second run from the checkpoint",
    ),
)
def cure(
    stage: Literal[1, 2] = 1,
    branches: int = 3,
    top: int = 20,
    min_chars: int = 2,
    max_length: int | None = None,
    buffer: int = 512,
    rounds: int = 10,
) -> Method:
    """DAPO whose groups are part new responses and part continuations from critical tokens of those.

    Stage 1, for a group of n: n / (1 + branches) responses are sampled; each is taken up ``branches`` times at a
    position c drawn at random from its ``top`` most uncertain ones (entropy of the policy), and sampled anew from token
    c on. All n are one group under the prompt, A_i = (R_i - mean R) / (std R + 1e-6); the verdict of a continuation is
    that of prefix and continuation together, while its loss begins at token c, since what stands before is its prompt.
    c is not the first token, nor one without at least ``min_chars`` characters beside white space; where none is left
    the response is sampled anew as a whole.

    Stage 2 is DAPO on the weights of stage 1: ``assay train`` once more, with ``model.source`` the checkpoint.

    Both clip the ratio to [0.8, 1.28] and at 10 where A < 0, take the mean over tokens, and ask on until the step is
    full of prompts that are neither all right nor all wrong.

    Args:
        stage: 1 or 2.
        branches: continuations per sampled response; 0 is DAPO.
        top: positions to draw from.
        min_chars: see above; digits and punctuation are left out by the default, as in the paper's implementation.
        max_length: of a response in tokens; if given, the last ``buffer`` of them are punished as in DAPO.
        buffer: see ``max_length``.
        rounds: of generation in a step, at most.

    Source: CURE (arXiv 2508.11016) and its implementation.
    """
    inner: Any = "single_turn" if stage == 2 else {"name": "cure", "branches": branches, "top": top}
    if stage == 1:
        inner["min_chars"] = min_chars
    reward: RewardPart = VerdictReward()
    if max_length is not None:
        # DAPO's right and wrong are 2 apart.
        overlong = {"name": "overlong", "max_length": max_length, "buffer": buffer}
        reward = WeightedSum({"verdict": "verdict", "overlong": overlong}, {"verdict": 2.0})
    return Method(
        reward=reward,
        select=DynamicSampling(),
        objective=ClippedSurrogate(clip_high=0.28, dual_clip=10.0),
        rollout={"name": "dynamic", "inner": inner, "rounds": rounds},
    )


@part("rollout", "cure")
@dataclass(frozen=True, slots=True)
class Critical:
    """Samples responses and continues each from uncertain positions, see :func:`cure`.

    A continuation is an episode whose prompt ends with the prefix, whose tokens are what was sampled after it, and
    whose text is both; ``meta`` says which response it was taken from (``branch_of``) and where (``at``).

    Args:
        sampling: how tokens are drawn; a continuation may be ``max_tokens`` long by itself.
        branches, top, min_chars: see :func:`cure`.

    Raises:
        UsageError: a number out of range.
        RunError: while collecting, the engine reports no entropies.
    """

    sampling: Sampling
    branches: int = 3
    top: int = 20
    min_chars: int = 2

    def __post_init__(self) -> None:
        if self.branches < 0 or self.top < 1 or self.min_chars < 0:
            raise UsageError(
                f"rollout 'cure': needs branches >= 0, top >= 1 and min_chars >= 0, not {self.branches}, {self.top} "
                f"and {self.min_chars}"
            )

    def collect(self, asks: Sequence[Ask], engine: Engine, rng: np.random.Generator) -> list[Group]:
        first = [replace(ask, n=-(-ask.n // (1 + self.branches))) for ask in asks]
        groups = SingleTurn(self.sampling).collect(first, engine, rng)
        lengths: dict[int, bool] = {}
        requests, of = [], []
        for g, (ask, group) in enumerate(zip(asks, groups, strict=True)):
            sampled = len(group.episodes)
            for b in range(ask.n - sampled):
                episode = group.episodes[b % sampled]
                at = self._position(episode, engine, lengths, rng)
                prompt, prefix = full_prompt(ask), tuple(episode.tokens[:at].tolist())
                requests.append(Request(prompt, 1, self.sampling, int(rng.integers(2**63)), prefix))
                of.append((g, b % sampled, at))
        made: list[list[Episode]] = [list(group.episodes) for group in groups]
        found = engine.generate(requests) if requests else []
        for (g, j, at), request, [episode] in zip(of, requests, found, strict=True):
            text = engine.decode([*request.prefix, *episode.tokens.tolist()])
            made[g].append(replace(episode, text=text, meta={**episode.meta, "branch_of": j, "at": at}))
        return [Group(ask, tuple(episodes)) for ask, episodes in zip(asks, made, strict=True)]

    def _position(self, episode: Episode, engine: Engine, long: dict[int, bool], rng: np.random.Generator) -> int:
        """Return where to resample a response; 0 where no position qualifies."""
        if episode.entropies is None:
            raise RunError("rollout 'cure' needs the entropies of sampled tokens, which this engine does not report")
        for token in set(episode.tokens.tolist()) - long.keys():
            long[token] = len(engine.decode([token]).strip()) >= self.min_chars
        allowed = [t for t in range(1, len(episode.tokens)) if long[int(episode.tokens[t])]]
        if not allowed:
            return 0
        order = np.argsort(-episode.entropies[allowed], kind="stable")
        return allowed[int(rng.choice(order[: self.top]))]


claims(
    (
        CLAIM := Claim(
            paper="S135",
            text="At equal rollouts, taking responses up again at uncertain tokens finds more of rare right answers "
            "than sampling all of them anew.",
            setting="tree",
            arms={
                "dapo": {"name": "S135", "rollout": {"name": "dynamic", "rounds": 1}},
                "cure": {
                    "name": "S135",
                    "rollout": {
                        "name": "dynamic",
                        "inner": {"name": "cure", "branches": 3, "top": 2, "min_chars": 1},
                        "rounds": 1,
                    },
                },
            },
            better="cure",
            baseline="dapo",
            measure="final",
            options={"tasks": 4, "prompts": 4, "group": 16, "depth": 5, "branching": 4, "right": 16, "steps": 100},
            sweep={"lr": (3.0, 10.0, 30.0, 100.0)},
        )
    ),
    replace(
        CLAIM,
        setting="unseen",
        options={"branching": 3, "depth": 5, "right": 8, "prompts": 4, "group": 16},
        sweep={"lr": (1e-3, 3e-3, 1e-2, 3e-2)},
    ),
    Claim(
        paper="S135",
        name="mechanism",
        text="Taking responses up again at uncertain tokens makes a policy that is right in more different "
        "ways, success and spread together, than sampling all of them anew.",
        setting="tree",
        arms={"dapo": CLAIM.arms["dapo"], "cure": CLAIM.arms["cure"]},
        better="cure",
        baseline="dapo",
        measure="breadth",
        options={**CLAIM.options, "steps": 60},
        sweep={"lr": (3.0, 10.0, 30.0, 100.0)},
        tuning=(1000, 1001),
    ),
)
