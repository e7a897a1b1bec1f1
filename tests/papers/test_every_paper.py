"""What holds for every paper's method, whatever it does: it survives what a run can throw at it, and it trains."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from anything import (
    CASES,
    FIRST,
    FIRST_ONES,
    METHODS,
    OPTIONS,
    REQUIRED,
    SOME,
    batch_of,
    gradient,
    method_of,
    on_policy,
    policy,
    valued,
)
from running import metrics, run, weights

from assay import catalogue
from assay.errors import UsageError
from assay.method import Method, make_method
from assay.policies.causal_lm import CausalLM

__all__ = ["policy"]  # a fixture

pytestmark = pytest.mark.usefixtures("one_thread")

FEW = {"warm_up": 0, "critic_updates": 1, "actor_updates": 1, "rows": 4, "batch": 4, "max_tokens": 3}
STEPS = {"language": "steps", "shown": 1, "inputs": 4}
SUMS = {"source": "solution", "template": "{hint}={question}"}  # which their alphabet has
IN_A_RECIPE = {
    **REQUIRED,
    **dict.fromkeys(("S027", "S058"), SUMS),
    "S075": {"judge": None, "penalty": 0.0},
    "S076": STEPS,
    "S080": {"first": ["1", "2"]},
    "S083": {"template": SUMS["template"]},
    "S101": {**REQUIRED["S101"], "rubric": ["1"], "template": "{attempt}+{criteria}"},
    "S104": {"pool": 4, "tries": 2},
    "S103": {"teachers": [{"name": "keywords", "replies": [], "otherwise": "7"}], "max_length": 4},
    "S159": {"hints": {"name": "keywords", "replies": [], "otherwise": "+"}, "template": "{hint}{question}"},
    "S201": FEW,
    "S206": {"pool": 4, "value_steps": 1},
}
"""A judge that is an object cannot be named in one; updates that are many are made few, prompts short, data small."""
ALWAYS = "abstentions"
"""The case that every method is tried on; the others, one of each kind where time is short."""
SHORT = {"train": {"steps": 2, "mini_batches": 1, "epochs": 2}, "warmup": {"steps": 0}, "evaluate": {"every": 0}}


@pytest.mark.parametrize(
    ("key", "case"),
    [
        pytest.param(key, case, marks=() if key in FIRST or case == ALWAYS else pytest.mark.slow)
        for key in METHODS
        for case in CASES
    ],
)
def test_nothing_a_run_can_bring_makes_a_nan(key: str, case: str, policy: CausalLM) -> None:
    """Equal rewards, empty responses, abstentions, groups of one: finite rewards, advantages, loss and gradient."""
    method = method_of(key)
    batch = valued(method, policy, batch_of(policy, case))
    assert bool(batch.advantages.isfinite().all()) and bool(batch.weights.isfinite().all())
    assert batch.advantages.shape == batch.mask.shape
    assert not bool(batch.advantages[~(batch.mask & batch.active[:, None])].any())
    loss, gradients = gradient(policy, method, batch)
    assert math.isfinite(loss) and all(bool(g.isfinite().all()) for g in gradients)
    abstained = torch.tensor([v.passed is None for v in batch.verdicts])
    assert not bool(batch.active[abstained].any()), "a sample without a verdict is learned from"


@pytest.mark.parametrize("key", SOME)
def test_micro_batches_add_up_and_order_does_not_matter(key: str, policy: CausalLM) -> None:
    """The same loss and gradient from one pass, and from one pass a group with the rows shuffled."""
    method = method_of(key)
    batch = valued(method, policy, batch_of(policy, "mixed"))
    loss, whole = gradient(policy, method, batch)
    order = torch.tensor([5, 0, 7, 2, 1, 6, 3, 4])
    other, gradients = gradient(policy, method, batch.rows(order), budget=1)
    assert other == pytest.approx(loss, abs=1e-9)
    assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(whole, gradients, strict=True))


AS_GRPO = {
    "S004": "states that are nearer the goal",
    "S012": "tasks that bring key points or checks",
    "S019": "verdicts that tell how near a response came",
    "S030": "a model behind the rule",
    "S027": "its rollout, which helps who failed",
    "S051": "critiques by people, or a model that has learned from these",
    "S055": "a field that has learned from right responses",
    "S056": "tasks without a reference",
    "S058": "its rollout, which guides who failed",
    "S059": "its curriculum, which pairs prompts",
    "S067": "its rollout decides which prompts are asked",
    "S068": "its rollout, which repairs responses",
    "S075": "a judge that finds a flaw",
    "S076": "proposals, and samples of several cells",
    "S083": "its rollout, which asks failed groups anew",
    "S080": "its curriculum, which draws instructions",
    "S081": "200 steps of plain GRPO come first",
    "S082": "more than one objective",
    "S108": "tools that are called",
    "S111": "verdicts that are noisy",
    "S112": "puzzles, and prompts that are asked in place of others",
    "S118": "a decoder that has been fitted",
    "S122": "tasks about tools",
    "S151": "drafts, which its rollout asks for",
    "S159": "its rollout, in which who fails tries again",
    "S153": "dialogues of several turns",
    "S166": "texts to continue",
    "S167": "judges of open answers",
    "S175": "its rollout, which grows trees of steps",
    "S173": "its rollout, which asks for judgements and reflections",
    "S187": "claims to verify",
    "S110": "turns that a checker has judged",
    "S208": "passages to rank",
    "S214": "its rollout, which shifts the logits that it samples from",
    "S222": "evidence, and answers that are not all marked",
    "S223": "its rollout, which has responses commented",
    "S224": "its curriculum, which begins solutions, and answers in boxes",
    "S225": "steps that several trajectories take",
    "S226": "judgments that are too long",
}
"""What these change shows on a batch with what is named; on other batches they are GRPO."""
NOTHING = {
    "S198": "turns that make the reference likelier",
    "S015": "a policy to which reasoning makes the reference likelier",
    "S040": "a policy to which reasoning makes the reference likelier",
    "S114": "a reward model that has learned, which says the same of everything at first",
    "S044": "proofs with an analysis of their own",
    "S125": "verdicts that say whether a tool has helped",
    "S143": "calls of tools, and a flag handed in",
    "S146": "turns that come nearer, and work handed in",
    "S154": "turns that an oracle has judged",
    "S190": "responses that come to their end",
    "S031": "a context with room for the prompt with what is shown",
    "S147": "a context with room for the prompt with what is shown",
    "S155": "a context with room for the prompt with what is shown",
    "S163": "a context with room for the prompt with its answer",
    "S176": "labels of a teacher, which its rollout brings",
    "S179": "documents to quote",
    "S099": "evidence that is submitted",
    "S216": "answers in tags to questions that may be looked up",
    "S217": "thoughts in tags before answers",
    "S211": "turns along an expert's episode",
    "S201": "turns that it says anew between updates",
}
"""These learn nothing from a batch without what is named."""


@pytest.fixture(scope="module")
def plain(policy: CausalLM) -> list[torch.Tensor]:
    """GRPO's gradient."""
    return gradient(policy, Method(), valued(Method(), policy, on_policy(policy)))[1]


@pytest.mark.parametrize("key", METHODS)
def test_it_acts(key: str, policy: CausalLM, plain: list[torch.Tensor]) -> None:
    """On responses with reasoning and an answer, right ones and wrong ones, it learns, and not what GRPO learns."""
    method = method_of(key)
    _, found = gradient(policy, method, valued(method, policy, on_policy(policy)))
    learns = any(bool((g.abs() > 1e-9).any()) for g in found)
    differs = not all(torch.allclose(a, b, atol=1e-9) for a, b in zip(found, plain, strict=True))
    assert learns is (key not in NOTHING)
    assert differs is (key not in AS_GRPO)


@pytest.mark.parametrize("key", FIRST_ONES)
def test_it_trains(key: str, tmp_path: Path) -> None:
    """Two steps through the real loop, with finite metrics and weights; on rewards that vary, or the paper's own."""
    method: dict[str, Any] = {"name": key, "options": IN_A_RECIPE.get(key, {})}
    if {"reward", "select"} & {*catalogue.find(key).seams}:
        method["reward"] = None
    folder = run(tmp_path / "run", method=method, **SHORT)
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(steps) == 2
    assert all(math.isfinite(v) for row in steps for v in row.values() if isinstance(v, float))
    assert all(bool(w.isfinite().all()) for w in weights(folder).values() if w.is_floating_point())


@pytest.mark.parametrize("key", METHODS)
def test_a_paper_stands_for_what_it_brings(key: str) -> None:
    """``method.credit=S017`` takes what S017 puts at the seam, unless GRPO's other half would ignore it."""
    for seam in {"reward", "credit", "select", "objective"} & {*catalogue.find(key).seams}:
        own = getattr(method_of(key), seam)
        try:
            found = getattr(make_method("grpo", **{seam: {"name": key, **OPTIONS.get(key, {})}}), seam)
        except UsageError as error:
            if "would do nothing" not in str(error):
                raise
        else:
            assert type(found) is type(own)
