"""What kind of reinforcement learning each part is of, in the terms of a survey: ``python -m assay.tables.taxonomy``.

Tags are read off the parts where they say enough (their class, options and what they need), and stand in
:data:`SAID` where they do not. The page docs/taxonomy.md is made from them.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from assay.registry import PACKAGES, find, names

REWARD = ("human", "AI", "rule", "process")
"""Who says what a response is worth: people, a model, a program, or somebody step by step."""
FEEDBACK = ("pairwise", "scalar", "verifiable", "textual")
"""In what form: which of two is better, a number, what can be checked, words."""
OPTIMISER = ("PPO", "actor-critic", "Q-learning", "DPO", "GRPO")
"""What turns it into an update."""
BESIDES = ("REINFORCE", "imitation")
"""Optimisers that the survey has no heading for."""
UNSORTED = "unsorted"
"""What an objective has of which nothing can be read off, until :data:`SAID` says more."""
ANY = "any"
"""The part serves whichever there is."""

DECIDED: dict[str, tuple[str, ...]] = {
    "reward": ("reward", "feedback"),
    "verify": ("reward", "feedback"),
    "credit": ("optimiser",),
    "objective": ("optimiser",),
}
"""Where a part has to have a tag other than :data:`ANY` and :data:`UNSORTED`, unless it wraps another part or
:data:`SAID` says so."""

INNER = {"inner", "terms", "labelled", "checks", "gate", "overrides", "objective", "parts", "loss"}
"""Options that hold other parts: what is wrapped decides."""


@dataclass(frozen=True, slots=True)
class Tags:
    """Of one part; each is a selection of the tags above, or :data:`ANY` alone."""

    reward: tuple[str, ...] = (ANY,)
    feedback: tuple[str, ...] = (ANY,)
    optimiser: tuple[str, ...] = (ANY,)


SAID: dict[tuple[str, str], Tags] = {
    ("reward", "follow_up"): Tags(("human",), ("textual", "scalar")),
    ("reward", "preference_model"): Tags(("human", "AI"), ("pairwise", "scalar")),
    ("reward", "pair_ratings"): Tags(("AI",), ("pairwise", "scalar")),
    ("reward", "against_member"): Tags(("AI",), ("pairwise",)),
    ("reward", "anchored_pairs"): Tags(("AI",), ("pairwise", "scalar")),
    ("reward", "probed_preferences"): Tags(("human", "AI"), ("pairwise", "scalar")),
    ("reward", "principles"): Tags(("human", "AI"), ("textual", "scalar")),
    ("reward", "random"): Tags(("rule",), ("scalar",)),
    ("reward", "function"): Tags(("rule",), ("scalar",)),
    ("reward", "kl"): Tags(("rule",), ("scalar",)),
    ("reward", "adaptive_kl"): Tags(("rule",), ("scalar",)),
    ("reward", "majority"): Tags(("AI",), ("scalar",)),
    ("verify", "none"): Tags(),
    ("credit", "gae"): Tags(optimiser=("PPO", "actor-critic")),
    ("credit", "turn_gae"): Tags(optimiser=("PPO", "actor-critic")),
    ("credit", "reinforce++"): Tags(optimiser=("PPO",)),
    ("credit", "reinforce++-baseline"): Tags(optimiser=("PPO", "GRPO")),
    ("credit", "reinforce"): Tags(optimiser=("REINFORCE",)),
    ("credit", "remax"): Tags(optimiser=("REINFORCE",)),
    ("objective", "soft_q"): Tags(optimiser=("Q-learning",)),
    ("objective", "soft_bins"): Tags(optimiser=("Q-learning",)),
    ("objective", "group_ranking"): Tags(optimiser=("DPO",)),
    ("objective", "thought_and_steps"): Tags(optimiser=("PPO", "GRPO")),
    ("objective", "newton"): Tags(),
    ("objective", "sft"): Tags(optimiser=("imitation",)),
    ("objective", "outcome_classifier"): Tags(("rule",), ("verifiable",), ("DPO",)),
    ("objective", "reference"): Tags(optimiser=("imitation", "REINFORCE")),
    ("objective", "both_orders"): Tags(("human",), ("pairwise",), ("imitation",)),
    ("objective", "picked_pairs"): Tags(("AI", "rule"), ("pairwise",), ("DPO",)),
    ("select", "pairs"): Tags(feedback=("pairwise",), optimiser=("DPO",)),
    ("rollout", "recorded"): Tags(("human",), ("scalar", "pairwise"), ("DPO", "imitation")),
    ("rollout", "pair_orders"): Tags(("human",), ("pairwise",), ("imitation",)),
    ("rollout", "demonstration"): Tags(("human",), (ANY,), ("imitation",)),
    ("inference", "refine"): Tags(feedback=("textual",)),
    ("inference", "refine_smt"): Tags(feedback=("textual",)),
    ("inference", "solve_detect_verify"): Tags(("process",), ("textual",)),
    ("inference", "mcts"): Tags(("process",), ("scalar",)),
    ("inference", "beam"): Tags(("process",), ("scalar",)),
    ("signal", "critic"): Tags(optimiser=("actor-critic", "PPO")),
    ("signal", "prompt_value"): Tags(optimiser=("actor-critic",)),
    ("signal", "follow_ups"): Tags(("human",), ("textual",)),
}
"""Parts whose tags cannot be read off them."""


def tags(seam: str, name: str) -> Tags:
    """Return the tags of a part."""
    if (seam, name) in SAID:
        return SAID[seam, name]
    made = find(seam, name)
    rule = {"reward": _reward, "verify": _verify, "credit": _credit, "objective": _objective, "tasks": _tasks}.get(seam)
    return rule(made) if rule is not None else Tags()


def wraps(seam: str, name: str) -> bool:
    """Say whether a part is made of other parts."""
    return bool(INNER & _options(find(seam, name)))


def _options(made: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(made).parameters)


def _module(made: Callable[..., Any]) -> str:
    return str(getattr(made, "__module__", ""))


def _reward(made: Callable[..., Any]) -> Tags:
    options, module = _options(made), _module(made)
    if INNER & options:
        return Tags()
    if {"steps", "potential"} & options or "step" in module:
        return Tags(("process",), ("scalar",))
    words = ("likelihood", "confidence", "intrinsic", "self_", "gain", "reflect", "faithful", "embed", "paraphrase")
    if {"judge", "embed", "scorer", "model", "likelihood"} & options or getattr(made, "needs", None):
        return Tags(("AI",), ("scalar",))
    if any(word in module or word in made.__name__.lower() for word in words):
        return Tags(("AI",), ("scalar",))
    return Tags(("rule",), ("verifiable", "scalar"))


def _verify(made: Callable[..., Any]) -> Tags:
    options = _options(made)
    if INNER & options:
        return Tags()
    # Every verdict has feedback in words.
    return Tags(("AI",) if "judge" in options else ("rule",), ("verifiable", "textual"))


def _credit(made: Any) -> Tags:
    if INNER & _options(made):
        return Tags()
    return Tags(optimiser=("GRPO",) if getattr(made, "group_relative", False) else ("REINFORCE",))


def _objective(made: Any) -> Tags:
    from assay.objectives.policy_gradient import PolicyGradient
    from assay.objectives.policy_loss import PolicyLoss

    if inspect.isclass(made) and issubclass(made, PolicyGradient):
        return Tags(optimiser=("REINFORCE", "actor-critic"))
    if inspect.isclass(made) and issubclass(made, PolicyLoss):
        return Tags(optimiser=("PPO", "GRPO", "actor-critic"))
    if _module(made).endswith("preference"):
        return Tags(("human", "AI"), ("pairwise",), ("DPO",))
    return Tags() if INNER & _options(made) else Tags(optimiser=(UNSORTED,))


def _tasks(made: Callable[..., Any]) -> Tags:
    # A source of one's own data may hold anything; the generated ones come with their verifier.
    if {"path", "sources"} & _options(made):
        return Tags()
    return Tags(("rule",), ("verifiable",))


def rows() -> list[tuple[str, str, Tags]]:
    """Return every registered part of every seam, those of papers among them, with its tags."""
    seams = [seam for seam in PACKAGES if seam not in ("logger", "callback")]  # these only look on
    return [(seam, name, tags(seam, name)) for seam in seams for name in names(seam)]


def undecided(found: Sequence[tuple[str, str, Tags]]) -> list[str]:
    """Return the parts that lack a tag they have to have, as ``seam name: kind of tag``."""
    return [
        f"{seam} {name}: {kind}"
        for seam, name, mine in found
        for kind in DECIDED.get(seam, ())
        if getattr(mine, kind) in ((ANY,), (UNSORTED,)) and (seam, name) not in SAID and not wraps(seam, name)
    ]


INTRODUCTION = """
# What kind of part is it?

Made from the parts by `python -m assay.tables.taxonomy > docs/taxonomy.md`; do not edit. A part that was added since is
not here yet; the tests compare what is. Every part has three tags, in the
terms of "A Technical Survey of Reinforcement Learning Techniques for Large Language Models": who says what a response
is worth (*reward*: human, AI, rule, process), in what form (*feedback*: pairwise, scalar, verifiable, textual), and
what turns it into an update (*optimiser*: PPO, actor-critic, Q-learning, DPO, GRPO; besides, REINFORCE and imitation).
A part that serves whichever there is stands under *any*.
"""

RECIPES = """
## The survey's recipes

| recipe | parts |
| --- | --- |
| PPO with a critic | credit `gae`, objective `clip` |
| RLHF, or RLAIF by a judge's preferences | reward `preference_model`, credit `gae`, objective `clip` |
| advantage actor-critic | credit `gae`, objective `reinforce` |
| Q-learning | objective `soft_q` |
| DPO, from people's preferences | rollout `recorded`, select `pairs`, objective `dpo` |
| DPO, from a judge's | rollout `single_turn`, reward `process` by a judge, select `pairs`, objective `dpo` |
| GRPO with verifiable rewards | reward `verdict`, credit `grpo`, objective `clip` |

All run through one step and share one record of a rollout, `Episode`.
"""


def page(only: Collection[tuple[str, str]] | None = None) -> str:
    """Return docs/taxonomy.md, of the parts ``only`` (seam and name) or of all."""
    found = [row for row in rows() if only is None or row[:2] in only]
    sections = [INTRODUCTION]
    unsorted = (UNSORTED,) if any(UNSORTED in mine.optimiser for *_, mine in found) else ()
    kinds = {"reward": REWARD, "feedback": FEEDBACK, "optimiser": (*OPTIMISER, *BESIDES, *unsorted)}
    for kind, known in kinds.items():
        lines = [f"## By {kind}", "", "| tag | parts |", "| --- | --- |"]
        for tag in known:
            mine = _by_seam([(seam, name) for seam, name, own in found if tag in getattr(own, kind)])
            lines.append(f"| {tag} | {'; '.join(f'{seam} {listed}' for seam, listed in mine.items())} |")
        sections.append("\n".join(lines))
    rest = _by_seam([(seam, name) for seam, name, own in found if own == Tags()])
    lines = ["## Any", "", "| seam | parts |", "| --- | --- |"]
    lines += [f"| {seam} | {listed} |" for seam, listed in rest.items()]
    sections += ["\n".join(lines), RECIPES]
    return "\n\n".join(section.strip() for section in sections) + "\n"


def listed(text: str) -> set[tuple[str, str]]:
    """Return seam and name of each part that a page has."""
    found = set()
    for line in text.partition("## The survey's recipes")[0].splitlines():
        cells = line.strip("| ").split(" | ")
        for piece in cells[1].split("; ") if len(cells) == 2 else ():
            seam = re.match(r"\w+(?= `)", piece)
            found |= {(seam[0] if seam else cells[0], name) for name in re.findall(r"`([^`]+)`", piece)}
    return found


def stale(text: str) -> str | None:
    """Return what a page has wrong of the parts that it lists; ``None`` if nothing. Parts that it lacks are new."""
    mine, there = listed(text), {(seam, name) for seam, name, _ in rows()}
    if gone := sorted(mine - there):
        return f"it lists parts that are gone: {', '.join(map(' '.join, gone))}"
    return None if text == page(mine) else "it is not what the parts say of themselves"


def _by_seam(parts: Sequence[tuple[str, str]]) -> dict[str, str]:
    return {seam: ", ".join(f"`{n}`" for s, n in parts if s == seam) for seam in dict.fromkeys(s for s, _ in parts)}


if __name__ == "__main__":
    print(page(), end="")
    for part in undecided(rows()):
        print(f"say in assay.tables.taxonomy.SAID what kind of part this is: {part}", file=sys.stderr)
