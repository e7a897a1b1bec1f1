"""DRM: the three dimensions by hand, advantages that are added, and pairs of the best and the worst."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from claimed import learned
from marked import Critic, stepped
from running import metrics, run

from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.errors import RunError, UsageError
from assay.method import make_method
from assay.objectives.picked_pairs import PickedPairs
from assay.objectives.preference import DPO
from assay.papers.process.s194_drm import Added, Dimensions, PairsAndSFT, Supports, drm, scorer_of, split
from assay.rewards.judges.score_of_ten import ScoreOfTen
from assay.verify.answer.place import marked
from assay.verify.support.cross_encoder import CrossEncoder

pytestmark = pytest.mark.usefixtures("one_thread")


def batch_of(texts, passed=None, logprobs=None, answers=(), groups=None, documents=()) -> Batch:
    """Responses of as many tokens as there are log-probabilities, of which the last ``answers[i]`` are the answer."""
    logprobs = logprobs or [[-1.0]] * len(texts)
    batch = stepped([[1] * len(row) for row in logprobs], passed or [True] * len(texts), groups=groups, texts=texts)
    batch.signals["answer_tokens"] = torch.zeros_like(batch.mask)
    for i, row in enumerate(logprobs):
        batch.logprobs[i, : len(row)] = torch.tensor(row)
        if i < len(answers):
            batch.signals["answer_tokens"][i, len(row) - answers[i] : len(row)] = True
    batch.answer = lambda task, text: marked(text, ("boxed",), "none")
    batch.tasks = [replace(t, meta={"documents": list(documents)}) for t in batch.tasks]
    return batch


def test_confidence_by_hand() -> None:
    """Reasoning of chances 1/2, 1/4, 1/2 and an answer of 0.8, 0.5; the same answer written twice is less confident."""
    r, a = [math.log(p) for p in (0.5, 0.25, 0.5)], [math.log(p) for p in (0.8, 0.5)]
    batch = batch_of(["x"] * 4, logprobs=[r + a, r + a + a, a, [*r, math.nan]], answers=(2, 4, 2, 0))
    reward = Dimensions(weights=(1, 0, 0))(batch)
    found = reward.terms["confidence"].tolist()
    assert found[0] == pytest.approx(-0.924196 - 0.916291, abs=1e-6) and found[0] == pytest.approx(-1.840487, abs=1e-6)
    assert found[1] == pytest.approx(-0.924196 - 1.832581, abs=1e-6)
    assert found[2] == pytest.approx(-0.916291, abs=1e-6), "without reasoning it has no confidence of its own"
    assert reward.valid is not None and reward.valid.tolist() == [True, True, True, False]
    assert found[3] == 0 and reward.terms["drm"][3] == 0, "what is not known is compared with nothing"
    assert Dimensions(weights=(1, 0, 0))(batch_of(["x"], logprobs=[[-2.0]])).terms["confidence"].tolist() == [-2]
    # What stands behind the answer, such as a closing tag, is neither.
    behind = batch_of(["x"], logprobs=[[*r, *a, -5.0]], answers=(3,))
    behind.signals["answer_tokens"][0, -1] = False
    assert Dimensions(weights=(1, 0, 0))(behind).terms["confidence"].tolist() == pytest.approx([-1.840487], abs=1e-6)


TEXT = r"We add them. \boxed{4} done"


def test_reasoning_and_answer() -> None:
    reasoning, answers = split(batch_of([TEXT, "no answer here", r"\boxed{5}"]))
    assert answers[0] == "4" and reasoning[0].startswith("We add them. ") and "done" not in reasoning[0]
    assert reasoning[1] == "no answer here" and answers[1] == "" and answers[2] == "5"


def said(pairs):
    """A scorer of pairs with known scores, and what it was asked."""
    asked = []

    def score(first: str, second: str):
        asked.append((first, second))
        return next((v for (a, b), v in pairs.items() if a in first and b in second), 0.0)

    return score, asked


def test_relevance_has_three_parts() -> None:
    """To the question 0.5, to the better of two documents 0.3, of the answer 0.2; without documents a part less."""
    score, asked = said({("question", "We add"): 0.5, ("far", "We"): 0.1, ("near", "We"): 0.3, ("We add", "4"): 0.2})
    with_documents = batch_of([TEXT, TEXT], documents=("far off", "near by"))
    found = Dimensions(score, weights=(0, 1, 0))(with_documents)
    assert found.terms["relevance"].tolist() == pytest.approx([1.0, 1.0])
    assert len(asked) == 4 and ("question 0", split(with_documents)[0][0]) in asked, "equal pairs are asked about once"
    assert Dimensions(score, weights=(0, 1, 0))(batch_of([TEXT])).terms["relevance"].tolist() == pytest.approx([0.7])
    mean = Dimensions(score, weights=(0, 1, 0), relevance="mean")
    assert mean(with_documents).terms["relevance"].tolist() == pytest.approx([1 / 3] * 2)
    assert mean(batch_of(["We add"])).terms["relevance"].tolist() == pytest.approx([0.25]), "no answer rests on it"
    failing = Dimensions(lambda a, b: None if b == "4" else 0.5, weights=(0, 1, 0))
    failed = failing(batch_of([TEXT, "We add"]))
    assert failed.valid.tolist() == [False, True] and failed.terms["relevance"].tolist() == [0.5, 0.5]


def test_coherence_is_of_the_reasoning() -> None:
    """Not of the answer; a response without reasoning has the least of its group, and is not asked about."""
    asked = []

    def quality(question: str, reasoning: str):
        asked.append(reasoning)
        return float(len(reasoning))

    batch = batch_of(["ab", "abcd", "", "abc", ""], groups=[0, 0, 0, 1, 2])
    found = Dimensions(quality=quality, weights=(0, 0, 1))(batch)
    assert found.terms["coherence"].tolist() == [2, 4, 2, 3, 0] and "" not in asked
    assert bool(found.valid.all())
    down = Dimensions(quality=lambda q, r: None, weights=(0, 0, 1))(batch)
    assert down.valid.tolist() == [False, False, True, False, True] and down.terms["coherence"].tolist() == [0] * 5


def test_dimensions_are_brought_to_one_scale() -> None:
    """Coherence a thousand times as large counts no more: each is less its group's mean, by its deviation."""
    logprobs = [[-1.0], [-2.0], [-4.0]]
    for factor in (1.0, 1000.0):
        quality = lambda q, r, factor=factor: factor * len(r)  # noqa: E731
        batch = batch_of(["a", "abc", "ab"], [True, False, False], logprobs)
        found = Dimensions(quality=quality, weights=(0.2, 0.0, 0.5))(batch)
        conf, coh = np.array([-1.0, -2, -4]), np.array([1.0, 3, 2])
        want = 0.2 * (conf - conf.mean()) / conf.std() + 0.5 * (coh - coh.mean()) / coh.std()
        assert found.terms["drm"].tolist() == pytest.approx(want.tolist()) and found.values.tolist() == [1, 0, 0]
    alone = Dimensions(quality=quality, weights=(0.2, 0.0, 0.5), alone=True)(batch)
    assert alone.values.tolist() == pytest.approx(want.tolist())
    alike = Dimensions(weights=(1, 0, 0))(batch_of(["a", "b"], [True, False]))
    assert alike.terms["drm"].tolist() == [0, 0], "where all are equal there is nothing to compare"


def added(outcomes, worth, **options):
    batch = batch_of(["x"] * len(outcomes), [bool(o) for o in outcomes])
    batch.rewards = torch.tensor(outcomes, dtype=torch.float64)
    batch.reward_terms = {"drm": torch.tensor(worth, dtype=torch.float64)}
    return Added(**options)(batch)[:, 0].tolist()


def test_advantages_are_added() -> None:
    """A right answer by poor reasoning falls below zero, with either deviation."""
    population = added([1, 0, 0, 1], [0.2, 0.6, 0.4, 0.8], inner=GRPO(ddof=0, epsilon=0.0))
    assert population == pytest.approx([-0.341641, -0.552786, -1.447214, 2.341641], abs=1e-6)
    sample = added([1, 0, 0, 1], [0.2, 0.6, 0.4, 0.8])
    assert sample == pytest.approx([-0.295870, -0.478727, -1.253324, 2.027920], abs=2e-5)
    assert added([1, 0, 0, 1], [0.3] * 4) == pytest.approx(added([2, 0, 0, 2], [0.0] * 4), abs=1e-5)
    with pytest.raises(RunError, match="no term 'drm'"):
        Added()(batch_of(["x"]))


def test_an_all_wrong_group_still_learns() -> None:
    quality = lambda q, r: float(len(r))  # noqa: E731
    batch = batch_of(["a", "abc", "ab"], [False] * 3)
    for mode in ("added", "alone"):
        found = drm(quality=quality, weights=(0, 0, 1), mode=mode).value(batch).advantages[:, 0]
        assert found.tolist() == pytest.approx([-1, 1, 0], abs=1e-5)
    right = batch_of(["a", "abc", "ab"], [True, False, False])
    alone = drm(quality=quality, weights=(0, 0, 1), mode="alone").value(right).advantages[:, 0]
    assert alone.tolist() == pytest.approx([-1, 1, 0], abs=1e-5), "the answer plays no part"


def test_best_against_worst() -> None:
    """The longest and the shortest reasoning of three; DPO of the pair, and the chosen one's mean log-probability."""
    method = drm(quality=lambda q, r: float(len(r)), weights=(0, 0, 1), mode="pairs", sft=0.5)
    batch = batch_of(["a", "abc", "ab"], [True, False, False], [[-1.0, -1.0], [-2.0, -1.5], [-1.0, -1.0]])
    method.value(batch)
    assert batch.weights.tolist() == [1, 1, 0]
    batch.signals["reference_logprobs"] = batch.logprobs - torch.tensor([[0.0, 0.0], [0.3, 0.1], [0.0, 0.0]])
    logprobs = batch.logprobs.clone().requires_grad_(True)
    loss = method.objective(logprobs, batch)
    plain = PickedPairs(DPO(0.1))(logprobs, batch)
    assert plain.value.item() == pytest.approx(math.log(1 + math.exp(-0.1 * 0.4)))
    assert loss.value.item() == pytest.approx(plain.value.item() + 0.5 * 1.75)
    assert loss.metrics["sft"] == pytest.approx(1.75)
    loss.value.backward()
    assert logprobs.grad is not None
    pull = 0.1 * (1 - 1 / (1 + math.exp(-0.04)))
    assert logprobs.grad[1].tolist() == pytest.approx([-pull - 0.25] * 2) and logprobs.grad[0, 0].item() > 0
    assert not bool(logprobs.grad[2].any())


def test_two_groups_weigh_alike() -> None:
    objective = PairsAndSFT(sft=1.0)
    method = drm(quality=lambda q, r: float(len(r)), weights=(0, 0, 1), mode="pairs")
    batch = batch_of(["a", "abc", "x", "xyz"], None, [[-1.0], [-2.0], [-3.0], [-4.0]], groups=[0, 0, 1, 1])
    method.value(batch)
    batch.signals["reference_logprobs"] = batch.logprobs.clone()
    assert objective(batch.logprobs, batch).value.item() == pytest.approx(math.log(2) + 3)
    half = replace(batch, totals=replace(batch.count(), groups=4.0))
    assert objective(batch.logprobs, half).value.item() == pytest.approx((math.log(2) + 3) / 2), "a part of four groups"


def test_pairs_of_a_group_weigh_alike() -> None:
    """Of rewards 2, 1, 0 the first is chosen twice and the second once: means of 3 / 2 (over tokens), and of 4."""
    objective = PairsAndSFT()
    assert (objective.sft, objective.pairs.loss.beta) == (1, 0.1)
    batch = batch_of(["a", "b", "c"], None, [[-1.0, -2.0], [-4.0], [-7.0, -1.0, -1.0]])
    batch.rewards = torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64)
    batch.signals["reference_logprobs"] = batch.logprobs.clone()
    assert objective(batch.logprobs, batch).metrics["sft"] == pytest.approx((1.5 + 1.5 + 4) / 3)
    assert PairsAndSFT(sft=0.0)(batch.logprobs, batch).value.item() == pytest.approx(math.log(2))


@pytest.mark.slow
def test_a_folder_is_a_cross_encoder(tmp_path: Path) -> None:
    """The second text is the claim, the first the passage."""
    torch.manual_seed(0)
    encoder = CrossEncoder.fresh(["a b c d e f"], hidden=8, layers=1, heads=1)
    encoder.save(tmp_path / "model")
    scorer = scorer_of(str(tmp_path / "model"), "", Supports)
    assert scorer.scores([("a b", "c d e")]) == pytest.approx(encoder.scores([("c d e", "a b")]).tolist(), abs=1e-5)


def test_what_scores() -> None:
    critic = Critic(lambda prompt, k: None if "down" in prompt else "hm" if "mute" in prompt else "Score: 4")
    asked = scorer_of(critic, "A {first} B {second}", lambda path: None)
    assert isinstance(asked, ScoreOfTen)
    assert asked.scores([("x", "{first}"), ("mute", ""), ("down", "")]) == [0.4, None, None]
    assert critic.asked[0].prompt == "A x B {first}"
    with pytest.raises(UsageError, match="no engine, folder"):
        scorer_of(3, "", lambda path: None)
    assert scorer_of(f"{__file__}:shared", "", lambda path: None).scores([("ab", "bc")]) == [0.5]


def test_options() -> None:
    for bad, why in (
        ({}, "entailment = "),
        ({"entailment": shared}, "quality = "),
        ({"weights": (-1.0, 0.0, 1.0)}, "not negative"),
        ({"weights": (0.0, 0.0, 0.0)}, "not all 0"),
    ):
        with pytest.raises(UsageError, match=why):
            drm(**bad)
    with pytest.raises(UsageError, match="sft"):
        PairsAndSFT(sft=-1.0)
    likely = drm(weights=(1.0, 0.0, 0.0), mode="alone")
    assert likely.reward.entailment is None and likely.reward.weights == (1, 0, 0)
    made = drm(shared, shared, mode="pairs")
    assert (made.objective.sft, made.objective.pairs.loss.beta) == (1, 0.1)
    assert made.objective.whole_groups and Added().group_relative
    assert Dimensions(shared, shared).weights == (0.2, 0.3, 0.5)
    assert make_method("S194", options={"entailment": shared, "quality": shared}).reward.weights == (0.2, 0.3, 0.5)


def shared(first: str, second: str) -> float:
    """The share of the second text's characters that stand in the first."""
    return sum(c in first for c in second) / max(len(second), 1)


@pytest.mark.parametrize("mode", ["added", "pairs"])
def test_a_run_learns_from_dimensions(tmp_path: Path, mode: str) -> None:
    """Hardly a response is right; its reasoning is worth something all the same."""
    folder = run(
        tmp_path / "run",
        method={
            "name": "S194",
            "reward": None,
            "options": {"entailment": f"{__file__}:shared", "quality": f"{__file__}:shared", "mode": mode},
        },
        train={"steps": 1, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    [row] = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert row["grad_norm"] > 0 and row["reward/confidence"] < 0


@pytest.mark.slow
def test_sound_steps_are_learned() -> None:
    valued_, paid = (learned("S194", arm, steps=25, lr=6.0) for arm in ("added", "outcome"))
    assert valued_["verified"] > paid["verified"] + 0.2 and valued_["rollouts"] == paid["rollouts"]
