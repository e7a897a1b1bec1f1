"""PromptCoT 2.0: the loop over rationales, on tables where all is exact and on a language model, and self-play."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run
from tasks.making.told import Told

from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.lab.settings.synthesis.rationales import Table
from assay.learning.likelihood import LanguageModel
from assay.papers.data.s144_promptcot2 import Annotated, SelfPlay, chosen, elbo, learn, promptcot2
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.tasks.making.filters import Agreement, PassRate
from assay.tasks.making.maker import Made, Maker, Model
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.making.sampled_concepts import SampledConcepts
from assay.tasks.making.task_file import read_tasks, write_tasks
from assay.tasks.making.work import Pipeline
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_reward_of_a_rationale() -> None:
    """(log p(z | c), log p(x | z, c)) of (-12, -40), (-20, -28), (-9, -50): R is -52, -48, -59."""
    rewards = [a + b for a, b in ((-12, -40), (-20, -28), (-9, -50))]
    assert rewards == [-52, -48, -59] and chosen(rewards) == 1 and chosen([1.0, 1.0]) == 0


def test_the_bound_of_a_table() -> None:
    """With the exact posterior the bound is log p(x | c), -1.2039728 where the joint adds up to 0.3; of three concepts,
    four rationales and five problems, exact EM never lowers it."""
    joint = np.log([0.05, 0.1, 0.15])
    assert elbo(joint, np.exp(joint) / 0.3) == pytest.approx(-1.2039728)
    assert elbo(joint, np.array([0.0, 0.0, 1.0])) == pytest.approx(-1.8971200)
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(20), 3).reshape(3, 4, 5)
    seen = [(c, x) for c in range(3) for x in (0, 2)]
    bounds = []
    for _ in range(6):
        counts = np.full_like(p, 1e-12)
        total = 0.0
        for c, x in seen:
            q = p[c, :, x] / p[c, :, x].sum()
            total += elbo(np.log(p[c, :, x]), q)
            assert elbo(np.log(p[c, :, x]), q) == pytest.approx(np.log(p[c, :, x].sum()))
            counts[c, :, x] += q
        bounds.append(total)
        p = counts / counts.sum((1, 2), keepdims=True)
    assert all(b >= a - 1e-9 for a, b in pairwise(bounds)) and bounds[-1] == pytest.approx(6 * np.log(0.5))


SEED = Annotated(("sum",), "add", "1+1")


def test_the_loop_learns_both_models() -> None:
    thoughts = ["add", "count"]
    generator = Table([SEED.joint(z) for z in thoughts] + ["other"], 0.5, np.random.default_rng(0))
    posterior = Table(thoughts, 0.5, np.random.default_rng(1))
    generator.rows[SEED.given], posterior.rows[SEED.asked] = np.array([0.1, 0.5, 0.4]), np.array([0.5, 0.5])
    done = learn(generator, posterior, [SEED], rounds=0)
    assert done == [] and generator.row(SEED.given).tolist() == pytest.approx([0.55, 0.25, 0.2])
    assert posterior.row(SEED.asked).tolist() == [0.75, 0.25], "both begin from the annotation"
    generator.rows[SEED.given] = np.array([0.1, 0.5, 0.4])
    generator.rate = posterior.rate = 0.25
    done = learn(generator, posterior, [SEED], rounds=3, k=16)
    assert [one.reward for one in done] == sorted(one.reward for one in done) and done[0].reward >= done[0].drawn
    assert done[-1].bound > done[0].bound and generator.row(SEED.given)[1] > 0.6
    assert posterior.row(SEED.asked)[1] > 0.5, "it comes to the rationale that makes the problem likelier"
    with pytest.raises(UsageError, match="one annotated problem or more"):
        learn(generator, posterior, [])


class Recorded:
    """Draws the rationales of a prompt in turn, scores by a table, and keeps what it was fitted to."""

    def __init__(self, scores: dict[str, float], drawn: dict[str, list[str]] | None = None):
        self.scores, self.drawn = scores, drawn or {}
        self.fits: list[tuple[list[str], int]] = []
        self.asked: list[tuple[int, int]] = []

    def draw(self, prompts: Sequence[str], n: int, seed: int) -> list[list[str]]:
        self.asked.append((n, seed))
        return [(self.drawn[prompt] * n)[:n] for prompt in prompts]

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [self.scores[text] for _, text in pairs]

    def fit(self, pairs: Sequence[tuple[str, str]], seed: int) -> None:
        self.fits.append(([text for _, text in pairs], seed))


def test_a_round_by_hand() -> None:
    """R of two rationales each, -3 and -1, -2 and -6, at log q -1 and -2, -0.5 and -1.5."""
    other = Annotated(("product",), "times", "2*3")
    joint = {SEED.joint("add"): -3.0, SEED.joint("count"): -1.0, other.joint("times"): -2.0, other.joint("guess"): -6.0}
    generator = Recorded(joint)
    posterior = Recorded(
        {"add": -1.0, "count": -2.0, "times": -0.5, "guess": -1.5},
        {SEED.asked: ["add", "count"], other.asked: ["times", "guess"]},
    )
    [done] = learn(generator, posterior, [SEED, other], rounds=1, k=2, seed=5)
    assert (done.reward, done.drawn, done.bound) == (-1.5, -3.0, -1.75)
    assert posterior.fits == [(["add", "times"], 5), (["count", "times"], 6)]
    best = [SEED.joint("count"), other.joint("times")]
    assert generator.fits == [([SEED.joint("add"), other.joint("times")], 5), (best, 6)]


def test_three_rounds_of_eight_rationales() -> None:
    generator = Recorded({SEED.joint("add"): -1.0})
    posterior = Recorded({"add": -1.0}, {SEED.asked: ["add"]})
    assert len(learn(generator, posterior, [SEED])) == 3
    assert [n for n, _ in posterior.asked] == [8] * 3 and len({seed for _, seed in posterior.asked}) == 3
    assert [seed for _, seed in generator.fits] == [seed for _, seed in posterior.fits] == [0, 1, 2, 3]


def test_a_language_model_is_scored_and_fitted() -> None:
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 512}
    model = LanguageModel(CausalLM.load(ModelConfig(source="nano", nano=nano), 0), steps=6, lr=2e-2)
    model.sampling = model.sampling.__class__(8, 1.0)
    pairs = [("2+2=", "4"), ("2+3=", "5")]
    before = model.score(pairs)
    assert all(s < 0 for s in before) and model.score(pairs[1:]) == pytest.approx(before[1:], abs=1e-4)
    batch = model.policy.encode_response("4")
    assert len(batch) == 2, "the end counts"
    uniform = -2 * np.log(len(model.policy.tokenizer))
    assert before == pytest.approx([uniform] * 2, abs=2.0)
    model.fit(pairs, 0)
    assert all(b > a + 1 for a, b in zip(before, model.score(pairs), strict=True))
    assert model.draw(["2+2="], 2, 7) == model.draw(["2+2="], 2, 7) and len(model.draw(["2+2="], 2, 7)[0]) == 2
    done = learn(model, model, [SEED], rounds=1, k=2)
    assert len(done) == 1 and done[0].reward >= done[0].drawn and torch.isfinite(torch.tensor(done[0].bound))


def answer(prompt: str, j: int) -> str:
    if "<concepts>" in prompt:
        return "<concepts>\nsum\ncarry\n</concepts>"
    if prompt.startswith("Design a problem"):
        return "Both meet in a column.\nProblem:\nWhat is 2 + 3?" if "- sum" in prompt else "no idea"
    return f"it is \\boxed{{{5 if j < 5 else 6}}} ({j})"


def solves(*right: int) -> Model:
    """A solver that is right so many times in its votes, in its attempts and in its play."""
    asked: list[int] = []

    def say(prompt: str, j: int) -> str:
        asked.extend([0] if j == 0 else [])
        return f"it is \\boxed{{{5 if j < right[len(asked) - 1] else 6}}} ({j})"

    return Model("s", Told(say))


def test_problems_by_way_of_rationales() -> None:
    models = {"writer": Model("m", Told(answer)), "solver": solves(5, 3, 5)}
    made = Maker(read_pipeline("S144", {"n": 1, "size": 2}), models)
    [task] = made.make([Task("s", "How much is 1 + 1?", "2", "math")]).tasks
    assert (task.prompt, task.reference) == ("What is 2 + 3?", "5") and task.meta[
        "rationale"
    ] == "Both meet in a column."
    assert task.meta["made"] == ("sampled_concepts", "write") and len(task.meta["responses"]) == 10
    lost = Maker(promptcot2(1), {"writer": Model("m", Told(lambda p, j: answer(p.replace("- sum", ""), j)))})
    assert lost.make([Task("s", "?")]).counts["write"].dropped == {"no problem is written": 1}
    assert task.meta["agreement"] == 0.625 and task.meta["pass_rate"] == 0.375
    usual = dict(promptcot2().steps)
    assert usual["sets"] == SampledConcepts(1000, 5) and usual["agreement"] == Agreement(8, 1)
    assert usual["hard"] == PassRate(8, 0.0, 0.375)
    assert usual["play"] == SelfPlay() == SelfPlay(64, "pairs", "solver", Sampling(1024, 1.2))


def test_what_is_solved_in_half_of_the_attempts_is_left_out() -> None:
    """For pairs; a teacher's solutions are kept of all. None right is not too many."""

    def counts(solver: Model, **options: Any) -> Made:
        pipeline = promptcot2(1, 2, **options)
        return Maker(pipeline, {"writer": Model("m", Told(answer)), "solver": solver}).make(
            [Task("s", "How much is 1 + 1?", "2", "math")]
        )

    assert counts(solves(5, 4, 5)).counts["hard"].dropped == {"solved too often": 1}
    assert len(counts(solves(8, 0, 5)).tasks) == len(counts(solves(5, 5), attempts=0).tasks) == 1
    [taught] = counts(solves(5, 5), keep="first").tasks
    assert taught.solution == "it is \\boxed{5} (0)"
    for most in (-1, 9):
        with pytest.raises(UsageError, match="of 8 attempts is no bound"):
            promptcot2(most=most)


def played(right: int, keep: str = "pairs") -> tuple[list[Task], dict[str, int]]:
    told = Told(lambda prompt, j: f"{j}: \\boxed{{{5 if j < right else 6}}}")
    step = SelfPlay(8, keep)  # type: ignore[arg-type]
    found = Maker(Pipeline("p", [("play", step)]), {"writer": Model("m", told)}).make(
        [Task("s", "2 + 3?", "5", "math")]
    )
    return found.tasks, dict(found.counts["play"].dropped)


def test_self_play() -> None:
    [task], _ = played(3)
    rows = task.meta["responses"]
    assert [r["reward"] for r in rows] == [1.0, 0.0] * 3
    assert [r["text"][0] for r in rows] == ["0", "3", "1", "4", "2", "5"]
    assert played(0) == ([], {"never solved": 1}) and played(8) == ([], {"always solved": 1})
    [taught], _ = played(8, "first")
    assert taught.solution == "0: \\boxed{5}" and played(0, "first")[0] == []


def test_pairs_are_learned_from(tmp_path: Path) -> None:
    """The file of tasks is one of preferences as well."""
    tasks = []
    for i in range(1, 9):
        both = [{"text": str(i + 1), "reward": 1.0}, {"text": "0", "reward": 0.0}]
        tasks.append(Task(f"t{i}", f"{i}+1=", str(i + 1), "math", meta={"responses": both}))
    path = tmp_path / "pairs.jsonl"
    write_tasks(path, tasks)
    assert read_tasks(path) == tasks and "responses" in json.loads(path.read_text().splitlines()[0])
    folder = run(
        tmp_path / "run",
        tasks={"source": {"name": "recorded", "path": str(path)}, "eval_size": 1, "eval_share": 0.2},
        method={"reward": None, "objective": {"name": "dpo", "beta": 0.1}, "rollout": "recorded"},
        warmup={"steps": 0},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 0},
        rollout={"prompts": 2, "group": 2},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and all(np.isfinite(row["loss"]) for row in rows)


def test_the_likeliest_rationale_makes_problems_likelier() -> None:
    best, any_ = learned("S144", "best of 8"), learned("S144", "any")
    assert best["likelihood"] > best["bound"] and any_["likelihood"] > any_["bound"]
