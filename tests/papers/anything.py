"""What a run can bring to a paper's method, made by hand: batches of random responses, and what is made of them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from choices import Reader

from assay import catalogue
from assay.batch import Batch
from assay.learning.signals import compute_signals, wants_reference
from assay.learning.update import update
from assay.method import Method
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.signals.base import Models
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.grounding.sentence_labels import written_labels

NANO: dict[str, Any] = {"source": "nano", "nano": {"hidden": 16, "layers": 2, "heads": 2, "context": 64}}
PRM = {"prm": f"{Path(__file__)}:scored"}
TEXTS = {name: f"{Path(__file__)}:{name}" for name in ("overlap", "plainness")}
CRITIC = {"critic": f"{Path(__file__)}:scored"}
REQUIRED: dict[str, dict[str, Any]] = {
    "S007": {"reader": {"name": "keywords", "replies": []}},
    "S018": PRM,
    "S046": {**CRITIC, "gated": False},
    "S057": CRITIC,
    "S060": {**PRM, "keep": 2},
    "S065": PRM,
    "S035": {"annotator": {"name": "keywords", "replies": []}},
    "S075": {"judge": Reader("3+9"), "penalty": 0.5},
    "S139": {"judge": CRITIC["critic"]},
    "S068": PRM,
    "S090": {"scorer": f"{Path(__file__)}:plain_length"},
    "S101": {"judge": {"name": f"{Path(__file__)}:Ticks"}, "rubric": ["is odd"]},
    "S113": {"judge": {"name": f"{Path(__file__)}:Ticks"}, "rubric": ["is odd"]},
    "S062": {"judge": {"name": f"{Path(__file__)}:Ticks"}, "rubric": ["is odd"]},
    "S109": {"judge": {"name": f"{Path(__file__)}:Grades"}},
    "S169": {"scorer": "verdict"},
    "S194": {"entailment": TEXTS["overlap"], "quality": TEXTS["plainness"]},
    "S118": {"path": str(Path(__file__).with_name("factors_of_turns.py"))},
    "S214": {"tuned": NANO, "base": NANO},
    "S114": {"assistant": {"name": f"{Path(__file__)}:Lengths"}},
    "S049": {"judge": {"name": f"{Path(__file__)}:Sentences"}, "steps": {"by": "newline"}},
    "S044": {"judge": {"name": "keywords", "replies": []}},
    "S029": {"judge": {"name": f"{Path(__file__)}:Compares"}, "most": 1.0},
    "S086": {"model": f"{Path(__file__)}:plain_length", "missing": "whole"},
    "S123": {
        "judge": {"name": f"{Path(__file__)}:Opinions"},
        "principles": ["odd", "even"],
        "form": "reasons",
        "read": "share",
    },
    "S158": {"judge": {"name": f"{Path(__file__).with_name('preferring.py')}:Prefers"}},
    "S209": {"judge": {"name": f"{Path(__file__).with_name('preferring.py')}:Prefers"}},
    "S161": {"judge": {"name": f"{Path(__file__)}:Lengths"}},
    "S223": {"teacher": {"name": "keywords", "replies": [], "otherwise": "7"}},
    "S066": {"form": "letters", "template": "{response}", "steps": {"by": "newline"}, "verifier_tokens": 3},
}
"""What a method has to be told."""
FOLLOW_UPS = {"understanding": {"positive": ["yes"], "negative": ["what"]}}
OPTIONS = {**REQUIRED, "S115": PRM, "S117": {"aspects": FOLLOW_UPS}}
"""Those, scores of steps where verdicts say nothing of them, and few follow-ups in place of a hundred and twenty."""


def scored(task: Task, steps: Sequence[str]) -> list[float]:
    """Scores of steps that differ, in [-1, 1]."""
    return [(sum(map(ord, step)) % 7) / 3 - 1 for step in steps]


def overlap(first: str, second: str) -> float:
    """The share of the second text's characters that stand in the first."""
    return sum(c in first for c in second) / max(len(second), 1)


def plainness(question: str, reasoning: str) -> float:
    """The fewer different characters, the plainer."""
    return -float(len(set(reasoning)))


def plain_length(task: Task, response: str) -> float:
    return float(len(response) % 7)


class Lengths:
    """A judge of stages that proposes one criterion, and finds it met by parts of an odd number of characters."""

    def encode(self, prompt: Any) -> Any:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> Any:
        raise NotImplementedError

    def decode(self, tokens: Any) -> str:
        raise NotImplementedError

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        none = np.zeros(0, dtype=np.int64)
        said = [
            "<item>odd</item>"
            if r.prompt.startswith("Several")
            else f"<scores>{len(r.prompt.partition('The part:')[2].partition('Criteria:')[0]) % 2}</scores>"
            for r in requests
        ]
        return [[Episode(none, none, none > 0, None, text, "eos")] for text in said]


class Grades(Lengths):
    """A judge whose grade of a solution is its number of characters."""

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        none = np.zeros(0, dtype=np.int64)
        shown = [str(r.prompt).partition("Solution:\n")[2].partition("\n\nAnalyse")[0] for r in requests]
        return [[Episode(none, none, none > 0, None, f"Score: {len(text) % 11}", "eos")] for text in shown]


class Compares(Lengths):
    """A judge of pairs that scores answers by a sum over their characters."""

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        none, out = np.zeros(0, dtype=np.int64), []
        for request in requests:
            shown = [str(request.prompt).partition(f"<answer-{k}>")[2].partition("</answer")[0] for k in (1, 2)]
            text = "Scores: {}, {}".format(*(sum(map(ord, x)) % 11 for x in shown))
            out.append([Episode(none, none, none > 0, None, text, "eos")])
        return out


class Opinions(Lengths):
    """A judge of principles that finds some fulfilled by responses, by their characters and its own."""

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        none = np.zeros(0, dtype=np.int64)
        said = ["Yes" if sum(map(ord, str(r.prompt))) % 3 else "No" for r in requests]
        return [[Episode(none, none, none > 0, None, f"\\boxed{{{x}}}", "eos")] for x in said]


class Sentences(Lengths):
    """A judge of sentences who calls those of an odd number of characters correct."""

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        none, out = np.zeros(0, dtype=np.int64), []
        for request in requests:
            shown = str(request.prompt).partition("Sentences of the answer:\n")[2].partition("\n\nWrite")[0]
            labels = [(True, bool(len(line) % 2)) for line in shown.splitlines()]
            text = written_labels(labels, ["so"] * len(labels))
            out.append([Episode(none, none, none > 0, None, text, "eos")])
        return out


class Ticks(Lengths):
    """A judge of rubrics who finds the first criterion met by responses of odd length, others always."""

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        none, out = np.zeros(0, dtype=np.int64), []
        for request in requests:
            text, _, rest = str(request.prompt).partition("Response:\n")[2].partition("\n\nCriteria:\n")
            labels = ["yes" if len(text) % 2 else "no", *["yes"] * (rest.count("(label:") - 1)]
            out.append([Episode(none, none, none > 0, None, json.dumps(labels), "eos")])
        return out


def method_of(key: str, **options: Any) -> Method:
    found = catalogue.make(key, **{**OPTIONS.get(key, {}), **options})
    assert isinstance(found, Method)
    return found


class Marks(Lengths):
    """A second policy that calls the first of two steps right, and the second and the answer wrong."""

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        none = np.zeros(0, dtype=np.int64)
        return [[Episode(none, none, none > 0, None, "TFF", "eos")] for _ in requests]


TRAINING = {"curriculum", "rollout", "reward", "credit", "select", "objective"}
ELSEWHERE = {
    "S007",
    "S008",
    "S013",
    "S020",
    "S039",
    "S042",
    "S048",
    "S073",
    "S102",
    "S106",
    "S126",
    "S129",
    "S133",
    "S136",
    "S145",
    "S148",
    "S152",
    "S157",
    "S160",
    "S164",
    "S168",
    "S177",
    "S189",
    "S196",
    "S199",
    "S204",
    "S220",
}
"""Those that refuse any tasks but their own, or make tasks and no method, or need a model in a folder; their own tests
have them."""
METHODS = [
    row.id
    for row in catalogue.rows()
    if row.factory is not None and TRAINING & {*row.seams} and row.id not in ELSEWHERE
]
FIRST = {frozenset(TRAINING & {*catalogue.find(key).seams}): key for key in reversed(METHODS)}.values()
"""A method of each kind: of those that bring parts at the same seams, the first."""
FIRST_ONES = [key if key in FIRST else pytest.param(key, marks=pytest.mark.slow) for key in METHODS]
"""All methods as parameters, of which only one of each kind is quick."""
SOME = [
    key if key in FIRST or not i % 3 else pytest.param(key, marks=pytest.mark.slow) for i, key in enumerate(METHODS)
]
"""All methods as parameters, of which one of each kind is quick, and of the others every third."""


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    torch.manual_seed(0)
    policy = CausalLM.load(ModelConfig(**NANO), 0)
    policy.module.double()
    return policy


def group(policy: CausalLM, name: str, lengths: list[int], right: list[bool | None], seed: int = 0) -> Group:
    """Random responses of given lengths and verdicts; sampled by a policy near this one."""
    rng = np.random.default_rng([seed, len(name), sum(lengths)])
    prompt = policy.encode(f"{len(name)}+2=")
    episodes, verdicts = [], []
    for length, passed in zip(lengths, right, strict=True):
        tokens = rng.integers(4, 14, length)
        logprobs = (-2.5 + 0.2 * rng.standard_normal(length)).astype(np.float32)
        entropies = (2 + 0.1 * rng.standard_normal(length)).astype(np.float32)
        text = policy.decode(tokens)
        stop = "eos" if length % 2 else "length"
        mask = np.ones(length, dtype=bool)
        episodes.append(Episode(prompt, tokens, mask, logprobs, text, stop, entropies))
        score = {True: 1.0, False: 0.0, None: 0.0}[passed]
        verdicts.append(Verdict(score, passed, {"a": score}, "" if passed is not None else "timed out"))
    task = Task(name, f"{len(name)}+2=", reference="3", solution="3")
    return Group(Ask(task, len(lengths)), tuple(episodes), tuple(verdicts))


CASES: dict[str, list[tuple[list[int], list[bool | None]]]] = {
    "mixed": [([3, 5, 2, 4], [True, False, False, True]), ([4, 1, 6, 2], [False, False, True, False])],
    "all right": [([3, 5, 2], [True, True, True]), ([2, 2, 2], [True, True, True])],
    "all wrong": [([3, 5, 2], [False, False, False])],
    "one token, none": [([1, 0, 1, 0], [True, False, False, True])],
    "abstentions": [([3, 5, 2, 4], [True, None, False, None]), ([3, 2], [None, None])],
    "one response": [([4], [True])],
    "one right in many": [([3] * 8, [True] + [False] * 7)],
}


def batch_of(policy: CausalLM, case: str) -> Batch:
    groups = [group(policy, "t" * (i + 1), *shape, seed=i) for i, shape in enumerate(CASES[case])]
    return Batch.from_groups(groups, torch.float64)


def on_policy(policy: CausalLM) -> Batch:
    """A prompt with right and wrong responses and one with wrong ones alone, drawn from the policy as it is.

    Responses reason in a line of their own before their answer.
    """
    newline = int(policy.encode_response("\n", end=False)[0])
    shapes: list[tuple[list[int], list[bool | None]]] = [
        ([4, 5, 3, 6], [True, False, False, True]),
        ([4, 3, 6, 5], [False] * 4),
    ]
    groups = []
    for i, shape in enumerate(shapes):
        made, episodes = group(policy, "t" * (i + 1), *shape, seed=i), []
        for episode in made.episodes:
            tokens = episode.tokens.copy()
            tokens[1] = newline
            episodes.append(replace(episode, tokens=tokens, text=policy.decode(tokens)))
        groups.append(replace(made, episodes=tuple(episodes)))
    batch = Batch.from_groups(groups, torch.float64)
    batch.logprobs = Models(policy).quantities(batch, {"logprobs"})["logprobs"]
    return batch


def signalled(method: Method, policy: CausalLM, batch: Batch) -> Batch:
    """Start what learns and compute what the method needs to know of a batch."""
    reference = policy.twin() if wants_reference(method.needs) else None
    models = Models(policy, reference, encode=policy.encode, partner=Marks())
    torch.manual_seed(0)
    for learner in method.learners:
        learner.start(models)
    compute_signals(batch, method.needs, models)
    return batch


def valued(method: Method, policy: CausalLM, batch: Batch) -> Batch:
    return method.value(signalled(method, policy, batch))


def gradient(policy: CausalLM, method: Method, batch: Batch, budget: int = 8192) -> tuple[float, list[torch.Tensor]]:
    """Loss and gradient of a mini-batch, the weights left alone."""
    parameters = list(policy.module.parameters())
    found: list[torch.Tensor] = []

    class Keep(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            found.extend(torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters)

    result, _ = update(
        policy,
        method.objective,
        batch,
        Keep(parameters, {}),
        live=method.live,
        token_budget=budget,
        max_grad_norm=math.inf,
        skip_idle=getattr(method.objective, "zero_advantage_is_idle", False),
    )
    return result["loss"], found
