"""CRew: answer tokens and their confidence, best-of-n and vote, and the pairs of widest confidence with their loss."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from running import assert_same, recipe, tables
from spelled import NANO, all_groups, alone, nano, responses, tree

import assay
from assay.batch import Batch
from assay.catalogue import make
from assay.config import load_config
from assay.console import Reporter
from assay.curriculum.rounds import Rounds
from assay.engines.base import Sampling
from assay.engines.hf import HFEngine
from assay.errors import RunError, UsageError
from assay.inference.base import Strategy
from assay.inference.voting.answer_confidence import AnswerConfidence, by_answer_confidence
from assay.lab.settings.open_ended.references import Spelling
from assay.learning.signals import compute_signals
from assay.method import make_method
from assay.objectives.picked_pairs import PickedPairs, picked
from assay.objectives.preference import DPO, IPO, KTO
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.records.surveys import read_survey, survey_file
from assay.registry import build
from assay.rewards.likelihood.confidence import Confidence
from assay.rewards.outcome.noted import Noted
from assay.select.pairs import ID, OVER, Pairs
from assay.signals.answer_tokens import AnswerTokens, answer_range
from assay.signals.base import Models
from assay.tasks.listed import Listed
from assay.tasks.split import TrainStream
from assay.training.build import build_trainer
from assay.training.loop import Trainer
from assay.types import Ask, Episode, Group, Task
from assay.verify.answer.extract import extract
from assay.verify.answer.place import marked

MARKS = ("answer_tag", "boxed")

pytestmark = pytest.mark.usefixtures("one_thread")

# --- the answer and how sure it is ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"\boxed{3} no, \boxed{ 4 }", "4"),
        (r"<answer>It is \boxed{5}</answer>", "5"),
        ("<answer> 7 apples\n</answer> end", "7 apples"),
        (r"\boxed{}", None),
        (r"\boxed{3", None),
        ("3", None),
        ("", None),
    ],
)
def test_where_the_answer_stands(text, answer) -> None:
    place = marked(text, MARKS, "none")
    assert (text[place.start : place.end] if place else None) == answer


@given(st.lists(st.sampled_from(["<answer>", "</answer>", r"\boxed{", "}", "a", " ", "{", "####"]), max_size=12))
def test_the_place_is_that_of_what_the_verifier_reads(pieces) -> None:
    text = "".join(pieces)
    for rules in (("answer_tag", "boxed"), ("boxed",), ("hashes",), ("regex:a(.*)",)):
        place, read = marked(text, rules, "none"), extract(text, rules, "none")
        assert (text[place.start : place.end] if place else "") == (read or "")


@given(st.lists(st.sampled_from(["x", r"\box", "ed{1", "2", "3", "4}", "}", " ", ""]), max_size=10))
def test_a_token_counts_if_a_character_of_the_answer_is_in_it(pieces) -> None:
    def decode(ids):
        return "".join(pieces[i] for i in ids)

    tokens = list(range(len(pieces)))
    place = marked(decode(tokens), MARKS, "none")
    owners = [k for k, piece in enumerate(pieces) for _ in piece]
    want = sorted({owners[c] for c in range(place.start, place.end)}) if place else []
    first, end = answer_range(tokens, decode, lambda text: marked(text, MARKS, "none"))
    # Tokens without text between two others change nothing but the count.
    assert [k for k in range(first, end) if pieces[k]] == want


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    torch.manual_seed(0)
    return CausalLM.load(ModelConfig(source="nano", nano=NANO | {"alphabet": "0123456789=\\boxed{} <answer>/"}), 0)


def rewarded(policy, batch, reference=None, **options):
    reward = Confidence(**{"answer": {"rules": MARKS}} | options)
    compute_signals(batch, reward.needs, Models(policy, reference or policy, encode=policy.encode))
    return reward(batch)


def test_the_worked_example(policy) -> None:
    batch = responses(policy, [r"9 \boxed{123}", "123"], passed=[False, True])
    start = 9
    assert policy.decode(batch.episodes[0].tokens[start : start + 3]) == "123"
    batch.logprobs[0, start : start + 3] = torch.tensor([0.9, 0.8, 0.99]).double().log()
    found = rewarded(policy, batch)
    assert found.values.tolist() == pytest.approx([0.896667, 0], abs=1e-6)
    assert found.terms["answered"].tolist() == [1, 0] and found.valid.all()
    whole = rewarded(policy, batch, over="response").values
    assert whole[0] == pytest.approx(batch.logprobs[0][batch.mask[0]].exp().mean().item())
    assert whole[1] == pytest.approx(math.exp(-1))


def test_probabilities_are_those_of_one_sequence_by_itself(policy) -> None:
    """Teacher forcing reads any author's solution, here one longer than the other and one of another model."""
    other = policy.twin()
    for parameter in other.module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    batch = responses(policy, [r"12=\boxed{34}=5", r"\boxed{6}"])
    batch.logprobs[:] = torch.nan
    for source, model in (("policy", policy), ("reference", other)):
        found = rewarded(policy, batch, other, source=source)
        for i, (head, told) in enumerate([(r"12=\boxed{", "34"), (r"\boxed{", "6")]):
            want = np.exp(alone(model, head, told)).mean()
            assert found.values[i].item() == pytest.approx(want, abs=1e-5)
    # As sampled nothing is known of it, and nothing is said.
    assert not rewarded(policy, batch).valid.any()


def test_edges_of_the_reward(policy, make_batch) -> None:
    batch = responses(policy, [r"\boxed{1}", "", r"\boxed{2}"], passed=[True, False, None])
    found = rewarded(policy, batch)
    assert found.valid.tolist() == [True, True, False]
    assert found.values.tolist()[1] == 0
    with pytest.raises(UsageError, match="answer_tokens"):
        AnswerTokens(("json:a",))
    with pytest.raises(UsageError, match="no rule"):
        by_answer_confidence(rules=("box",))
    made = build("reward", {"name": "confidence", "answer": {"rules": ["boxed"]}})
    assert made.answer == AnswerTokens(("boxed",))


def test_one_unknown_token_of_the_answer_leaves_no_reward(policy) -> None:
    batch = responses(policy, [r"9 \boxed{123}"] * 2)
    batch.logprobs[0, 10] = torch.nan  # the answer's second token
    batch.logprobs[1, 0] = torch.nan  # none of the answer's
    found = rewarded(policy, batch)
    assert found.valid.tolist() == [False, True]
    assert found.values[0] == 0 and found.values[1] == pytest.approx(math.exp(-1))
    assert found.terms["answered"].tolist() == [1, 1], "it is there, if not known"
    assert rewarded(policy, batch, over="response").valid.tolist() == [False, False]


# --- at test time -----------------------------------------------------------------------------------------------------


def sampled(policy: CausalLM, text: str, last: float) -> Episode:
    """A response whose answer is its last character but one, sampled with a given probability."""
    tokens = policy.encode_response(text, end=False)
    logprobs = np.full(len(tokens), -1, dtype=np.float32)
    logprobs[-2] = math.log(last)
    return Episode(policy.encode(""), tokens, np.ones(len(tokens), dtype=bool), logprobs, text, "eos")


class Fixed:
    """An engine that always gives the same responses."""

    def __init__(self, policy: CausalLM, episodes: list[Episode]):
        self.policy, self.episodes = policy, episodes
        self.encode, self.encode_response, self.decode = policy.encode, policy.encode_response, policy.decode

    def generate(self, requests):
        return [self.episodes[: r.n] for r in requests]


def test_vote_and_best_by_hand(policy) -> None:
    """Answers 1 (.9), 2 (.5), 2 (.45), and one response without any: the vote is .95 against .9."""
    given = [(r"\boxed{1}", 0.9), (r"\boxed{2}", 0.5), (r"=\boxed{2}", 0.45), ("99", 0.99)]
    engine = Fixed(policy, [sampled(policy, *one) for one in given])
    for by, text in (("vote", r"\boxed{2}"), ("best", r"\boxed{1}")):
        strategy = build("inference", {"name": "answer_confidence", "by": by, "rules": MARKS})
        assert isinstance(strategy, Strategy)
        [answer] = strategy([Task("t", "q")], engine, 4, np.random.default_rng(0))
        assert answer.text == text and answer.scoring == 0
        assert answer.meta["scores"] == pytest.approx([0.9, 0.5, 0.45, 0])
    blind = [replace(e, logprobs=None) for e in engine.episodes]
    found = AnswerConfidence(MARKS).score([(Task("t", "q"), e) for e in blind], engine, np.random.default_rng(0))
    assert [s.value for s in found] == [None, None, None, 0]


def test_best_of_n_takes_the_surest_response() -> None:
    engine = Spelling(tree(3), 1)
    strategy = by_answer_confidence("best", ("regex:=(.*)",), Sampling(8))
    [answer] = strategy([Task("0", "0")], engine, 6, np.random.default_rng(0))
    assert answer.tokens == sum(len(e.tokens) for e in answer.episodes) and len(answer.episodes) == 6
    last = [float(np.exp(e.logprobs[-1])) for e in answer.episodes]
    assert answer.meta["scores"] == pytest.approx(last)
    assert answer.text == answer.episodes[int(np.argmax(last))].text


def test_an_engine_of_a_language_model(policy) -> None:
    made = build("inference", {"name": "answer_confidence", "sampling": Sampling(12)})
    answers = made([Task("a", "1"), Task("b", "2")], HFEngine(policy, 8), 3, np.random.default_rng(0))
    assert [len(a.meta["scores"]) for a in answers] == [3, 3]


# --- pairs ------------------------------------------------------------------------------------------------------------


def chosen(select: Pairs, batch) -> list[list[int]]:
    """The pairs as the objective reads them back."""
    batch.weights = select(batch)
    better, worse = picked(batch)
    return [list(p) for p in zip(better.tolist(), worse.tolist(), strict=True)]


@pytest.fixture
def four(make_batch):
    """Right answers of confidence .9 and .4, wrong ones of .8 and .2."""
    return lambda: make_batch([1] * 4, [0.9, 0.4, 0.8, 0.2], passed=[True, True, False, False])


def test_the_pairs_of_the_worked_example(four) -> None:
    """Differences .1, .7, -.4, .2."""
    for rank in ("margin", "gap"):
        assert chosen(Pairs(better="verdict", rank=rank), four()) == [[0, 3]]
    assert chosen(Pairs(better="verdict", rank="margin", count=2), four()) == [[0, 3], [1, 3]]
    assert chosen(Pairs(better="verdict", rank="gap", count=2), four()) == [[0, 3], [1, 2]]
    assert chosen(Pairs(better="verdict", count=None), four()) == [[0, 2], [0, 3], [1, 2], [1, 3]]
    assert chosen(Pairs(better="verdict", count=9, margin=0.2), four()) == [[0, 3], [1, 3]]
    assert chosen(Pairs(), four()) == [[0, 3]]
    assert chosen(Pairs(rank="total"), four()) == [[0, 2]]
    batch = four()
    batch.weights = Pairs(better="verdict")(batch)
    assert batch.weights.tolist() == [1, 0, 0, 1]


def test_constraints_are_met_at_their_bounds(make_batch) -> None:
    batch = make_batch([10, 11, 12], [0.3, 0.4, 0.5])
    batch.rewards = batch.rewards.float()
    assert chosen(Pairs(margin=0.1, count=None), batch) == [[1, 0], [2, 0], [2, 1]]
    assert chosen(Pairs(margin=0.1, length=0.1, count=None), batch) == [[1, 0], [2, 1]]
    assert chosen(Pairs(margin=0.11, count=None), batch) == [[2, 0]]
    assert chosen(Pairs(length=0.0), batch) == []


def test_ties_with_the_last_are_kept(make_batch) -> None:
    batch = make_batch([1] * 4, [1.0, 1.0, 0.0, 0.0])
    assert chosen(Pairs(count=1), batch) == [[0, 2], [0, 3], [1, 2], [1, 3]]
    assert chosen(Pairs(), make_batch([1] * 3, [0.5] * 3)) == []


def test_who_is_in_no_pair(make_batch) -> None:
    batch = make_batch([1, 0, 1, 1], [0.9, 5.0, 0.1, 0.5], groups=[0, 0, 0, 1], passed=[True, True, False, False])
    assert chosen(Pairs(), batch) == [[0, 2]]
    batch.valid = torch.tensor([False, True, True, True])
    batch.weights = torch.ones(4, dtype=torch.float64)
    assert chosen(Pairs(), batch) == []
    unsure = make_batch([1, 1], [0.9, 0.1], passed=[None, False])
    assert chosen(Pairs(better="verdict"), unsure) == []
    unsure.weights = torch.ones(2, dtype=torch.float64)
    unsure.reward_terms["x"] = torch.tensor([math.nan, 0.0])
    with pytest.raises(RunError, match="no term 'y'"):
        Pairs(by="y")(unsure)
    with pytest.raises(RunError, match="x of row 0"):
        Pairs(by="x")(unsure)
    for bad in ({"count": 0}, {"length": -1.0}):
        with pytest.raises(UsageError, match="pairs"):
            Pairs(**bad)


SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0]), min_size=1, max_size=7)


@given(SCORES, st.data(), st.sampled_from(["margin", "gap", "total"]), st.sampled_from(["score", "verdict"]))
def test_pairs_by_brute_force(make_batch, scores, data, rank, better) -> None:
    n = len(scores)
    lengths = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    passed = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    groups = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    count, margin = data.draw(st.sampled_from([None, 1, 2])), data.draw(st.sampled_from([None, 0.2]))
    batch = make_batch(lengths, scores, groups=groups, passed=passed)
    want = []
    for g in (0, 1):
        may = [
            (w, v)
            for w in range(n)
            for v in range(n)
            if groups[w] == groups[v] == g
            and min(lengths[w], lengths[v]) > 0
            and (scores[w] > scores[v] if better == "score" else passed[w] and not passed[v])
            and (margin is None or scores[w] - scores[v] > margin - 1e-9)
            and abs(lengths[w] - lengths[v]) <= 0.5 * min(lengths[w], lengths[v])
        ]
        value = {
            "margin": lambda p: scores[p[0]] - scores[p[1]],
            "gap": lambda p: abs(scores[p[0]] - scores[p[1]]),
            "total": lambda p: scores[p[0]] + scores[p[1]],
        }[rank]
        ranked = sorted(map(value, may), reverse=True)
        want += [list(p) for p in may if count is None or value(p) >= ranked[min(count, len(ranked)) - 1] - 1e-9]
    select = Pairs(better=better, rank=rank, count=count, margin=margin, length=0.5)
    assert chosen(select, batch) == sorted(want)
    assert batch.weights.tolist() == [float(any(i in p for p in want)) for i in range(n)]
    # Another order of samples, and taking only those that were picked, change nothing.
    order = torch.from_numpy(np.random.default_rng(n).permutation(n))
    again = batch.rows(order)
    better_rows, worse_rows = picked(again)
    assert sorted(zip(order[better_rows].tolist(), order[worse_rows].tolist(), strict=True)) == [
        tuple(p) for p in sorted(want)
    ]


# --- the loss ---------------------------------------------------------------------------------------------------------

H = [0.3, -0.2, 0.5, 0.4, 0.1]


@pytest.fixture
def five(make_batch):
    """Two groups; h is 0.3, -0.2, 0.5 and 0.4, 0.1."""
    batch = make_batch([1] * 5, [1.0, 0.0, 0.5, 0.0, 1.0], groups=[0, 0, 0, 1, 1])
    batch.signals["reference_logprobs"] = torch.full((5, 1), -1.0, dtype=torch.float64)
    now = torch.tensor(H, dtype=torch.float64)[:, None] - 1
    batch.signals["policy_logprobs"] = now
    return batch, now


def dpo(w: int, v: int, beta: float) -> float:
    return math.log(1 + math.exp(-beta * (H[w] - H[v])))


def test_dpo_over_picked_pairs_by_hand(five) -> None:
    batch, now = five
    objective = PickedPairs(DPO(beta=2.0))
    assert chosen(Pairs(), batch) == [[0, 1], [4, 3]]
    loss = objective(now, batch)
    assert loss.value.item() == pytest.approx((dpo(0, 1, 2.0) + dpo(4, 3, 2.0)) / 2)
    assert loss.metrics["pairs"] == 2 and loss.metrics["preference/accuracy"] == 0.5
    # Several pairs of a group share its weight; sample 0 is in two of them.
    batch.weights = torch.ones(5, dtype=torch.float64)
    assert chosen(Pairs(count=2, rank="total"), batch) == [[0, 1], [0, 2], [4, 3]]
    want = ((dpo(0, 1, 2.0) + dpo(0, 2, 2.0)) / 2 + dpo(4, 3, 2.0)) / 2
    assert objective(now, batch).value.item() == pytest.approx(want)


@pytest.mark.parametrize("loss", [DPO(beta=0.7), IPO(beta=0.7, mean_over_tokens=False)])
def test_all_pairs_picked_is_the_plain_loss(five, loss) -> None:
    batch, now = five
    plain = loss(now, batch).value.item()
    assert PickedPairs(loss)(now, batch).value.item() == pytest.approx(plain)
    batch.weights = Pairs(count=None)(batch)
    assert PickedPairs(loss)(now, batch).value.item() == pytest.approx(plain)


def test_kto_counts_each_sample_once(five) -> None:
    batch, now = five
    batch.weights = Pairs(count=2, rank="total")(batch)
    objective = PickedPairs(KTO(beta=2.0))
    objective.prepare(batch)
    z = sum(H) / 5

    def one(h: float, good: bool) -> float:
        return 1 / (1 + math.exp(2.0 * (h - z) * (1 if good else -1)))

    want = one(0.3, True) + one(-0.2, False) + one(0.5, False) + one(0.1, True) + one(0.4, False)
    assert objective(now, batch).value.item() == pytest.approx(want / 5)


def test_gradients_by_finite_differences(five) -> None:
    batch, now = five
    batch.weights = Pairs(count=2)(batch)
    here = now.clone().requires_grad_()
    objective = PickedPairs(DPO(beta=1.3))
    assert torch.autograd.gradcheck(lambda x: objective(x, batch).value, here)


def test_a_pair_that_lost_a_sample_is_not_learned(five) -> None:
    batch, now = five
    weights = Pairs()(batch)
    batch.weights = weights * torch.tensor([1, 1, 1, 0, 1]).double()
    loss = PickedPairs("dpo")(now.requires_grad_(), batch)
    assert loss.metrics["pairs"] == 1
    batch.weights = weights * 0
    nothing = PickedPairs("dpo")(now, batch)
    nothing.value.backward()
    assert nothing.value.item() == 0
    assert {ID, OVER} <= set(batch.signals) and OVER in batch.whole


def test_only_losses_of_preference() -> None:
    for bad in ("clip", {"name": "dpo", "by": "verdict"}):
        with pytest.raises(UsageError, match="picked_pairs"):
            PickedPairs(bad)
    assert build("objective", {"name": "picked_pairs", "loss": {"name": "ipo", "beta": 0.2}}).loss == IPO(beta=0.2)
    assert "policy_logprobs" in PickedPairs("kto").needs


# --- the method -------------------------------------------------------------------------------------------------------


def test_the_method_prefers_sure_right_answers_to_unsure_wrong_ones() -> None:
    """The step on the expected loss makes the right answers of picked pairs likelier, the wrong ones less likely."""
    method = make("S127", count=1, rules=("regex:=(.*)",))
    assert (method.objective.loss.beta, make("crew").select.count) == (0.3, 10)
    policy = tree(1)
    batch, _ = all_groups(policy, 3)
    compute_signals(batch, method.needs, Models(policy, policy.twin()))
    method.value(batch)
    loss = method.objective(policy.forward(batch).logprobs, batch)
    policy.logits.grad = None
    loss.value.backward()
    step = policy.twin()
    with torch.no_grad():
        step.logits -= 0.1 * policy.logits.grad
    before, after = (p.forward(batch).logprobs.sum(-1) for p in (policy, step))
    better, worse = picked(batch)
    assert len(better) and bool(((after - before)[better] > (after - before)[worse]).all())
    sure = batch.rewards
    assert all(batch.verdicts[i].passed and not batch.verdicts[j].passed for i, j in zip(better, worse, strict=True))
    for g in batch.group[better].unique():
        rows = (batch.group == g).nonzero()[:, 0].tolist()
        right = [i for i in rows if batch.verdicts[i].passed]
        wrong = [i for i in rows if not batch.verdicts[i].passed]
        widest = max(sure[i] - sure[j] for i in right for j in wrong)
        here = batch.group[better] == g
        assert torch.allclose(sure[better[here]] - sure[worse[here]], widest, atol=1e-6)


def test_a_round_of_pairs_is_that_of_a_fixed_policy() -> None:
    """Recorded responses are scored by the policy as RL began: its updates change neither the scores nor the pairs."""
    method = make_method(
        "S127", rollout="recorded", options={"source": "reference", "count": 2, "rules": ["regex:=(.*)"]}
    )
    start = nano()
    said = [("1=7", 1.0), ("22=7", 1.0), ("3=8", 0.0), ("=9", 0.0)]
    task = Task("t", "4+3=", "7", meta={"responses": [{"text": t, "reward": r} for t, r in said]})
    rollout = build("rollout", method.rollout, sampling=Sampling(8))
    sure = [float(np.mean(np.exp(alone(start, t.partition("=")[0] + "=", t[-1], "4+3=")))) for t, _ in said]
    widest = sorted(((sure[w] - sure[v], w, v) for w in (0, 1) for v in (2, 3)), reverse=True)[:2]
    moved = start.twin()
    for parameter in moved.module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    for policy in (start, moved):
        batch = Batch.from_groups(rollout.collect([Ask(task, 4)], HFEngine(policy), np.random.default_rng(0)))
        assert [e.text for e in batch.episodes] == [t for t, _ in said]
        compute_signals(batch, method.needs, Models(policy, start, encode=policy.encode))
        method.value(batch)
        assert batch.rewards.tolist() == pytest.approx(sure, abs=1e-5)
        batch.weights = method.select(batch)
        assert sorted(zip(*(rows.tolist() for rows in picked(batch)), strict=True)) == sorted(
            (w, v) for _, w, v in widest
        )


def crews(folder: Path, **options: Any) -> dict[str, Any]:
    """Rounds of two steps on five sums; right is what has an odd number of characters, and an answer is all of it."""
    odd = folder.parent / "odd.py"
    odd.write_text(
        "from assay.types import Verdict\n\n\nclass Odd:\n    def __call__(self, task, response):\n"
        "        return Verdict.right() if len(response) % 2 else Verdict.wrong()\n"
    )
    options = {"rounds": 2, "steps": 2, "tries": 12, "pool": 4, "rules": ["regex:(.+)"], **options}
    return recipe(
        folder,
        warmup={"steps": 15, "batch": 16, "lr": 3e-2},
        tasks={"verify": f"{odd}:Odd"},
        method={"name": "S127", "options": options, "reward": None},
        rollout={"prompts": 2, "group": 3, "max_tokens": 4, "max_rows": 24},
        train={"steps": 4, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 0},
        run={"checkpoint_every": 1, "rollouts_every": 1},
    )


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rounds") / "run"
    assay.train(crews(folder), quiet=True)
    return folder


def noted_in(folder: Path, step: int) -> dict[tuple[str, str], float]:
    """What was noted of a response, by task and text: mean probability of its tokens."""
    pieces = read_survey(survey_file(folder, step))
    return {(row["task"], r["text"]): r["noted"] for p in pieces for row in p.rows for r in row["responses"]}


def test_a_second_round_is_of_the_policy_that_the_first_trained(rounds: Path) -> None:
    """Responses, verdicts and confidence are noted once before each round, and all of a round is learned from them."""
    first, second = (noted_in(rounds, step) for step in (0, 2))
    assert first and second and len(list((rounds / "surveys").iterdir())) == 2
    both = first.keys() & second.keys()
    assert both and all(abs(first[key] - second[key]) > 1e-6 for key in both if key[1]), (
        "another policy is as sure of nothing"
    )
    for number, rows in enumerate(tables(rounds, "rollouts").values()):
        noted = first if number < 2 else second
        assert rows and all(
            row["reward/noted"] == pytest.approx(noted[row["task_id"], row["response"]], abs=1e-6) for row in rows
        )
        assert all(row["passed"] == (len(row["response"]) % 2 == 1) for row in rows)
    # What was noted first is what the policy that RL began with says of the characters alone.
    begun = CausalLM.load(ModelConfig(source="nano", nano={"hidden": 16, "layers": 1, "heads": 2, "context": 24}), 0)
    begun.load_weights(rounds / "reference")
    prompts = {row["task_id"]: row["prompt"] for rows in tables(rounds, "rollouts").values() for row in rows}
    told = [(prompts[task], text, sure) for (task, text), sure in first.items() if task in prompts and text]
    prompt, text, sure = told[0]
    assert sure == pytest.approx(float(np.mean(np.exp(alone(begun, "", text, prompt)))), abs=1e-4)


def test_every_round_learns_from_the_first_weights_on(tmp_path: Path) -> None:
    """Before the second round the weights are another's than RL began with; then they are these again."""
    trainer = build_trainer(load_config(crews(tmp_path / "run")), Reporter(quiet=True))
    again, seen = trainer.start_again, []

    def started() -> None:
        before, old = {k: v.clone() for k, v in trainer.policy.module.state_dict().items()}, trainer.optimizer
        again()
        after = {k: v.clone() for k, v in trainer.policy.module.state_dict().items()}
        seen.append((trainer.step, before, after))
        assert trainer.optimizer is not old and not trainer.optimizer.state and trainer.keeper.behind

    trainer.start_again = started  # type: ignore[method-assign]
    trainer.run()
    [(step, before, after)] = seen
    assert step == 2 and trainer.reference is not None
    first = trainer.reference.module.state_dict()
    assert all(torch.equal(after[k], first[k]) for k in after)
    assert not all(torch.equal(before[k], after[k]) for k in after)


@pytest.mark.parametrize("stop", [2, 3])
def test_rounds_go_on_after_a_stop(rounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    """Before the second round, or in it: what was noted is read, and no response is sampled again."""
    made = crews(tmp_path / "run")
    with monkeypatch.context() as patch:
        step = Trainer.rl_step

        def dies(trainer: Trainer) -> dict[str, float]:
            if trainer.step == stop:
                raise KeyboardInterrupt
            return step(trainer)

        patch.setattr(Trainer, "rl_step", dies)
        with pytest.raises(KeyboardInterrupt):
            assay.train(made, quiet=True)
    assay.train(resume=tmp_path / "run", quiet=True)
    assert_same(rounds, tmp_path / "run")
    for step in (0, 2):
        assert survey_file(rounds, step).read_bytes() == survey_file(tmp_path / "run", step).read_bytes()


def test_what_was_noted_and_is_lost(rounds: Path, tmp_path: Path) -> None:
    shutil.copytree(rounds, tmp_path / "run")
    survey_file(tmp_path / "run", 2).unlink()
    with pytest.raises(RunError, match=r"noted before step 3 is not in .*step-000002.jsonl any more; put it back"):
        assay.train(resume=tmp_path / "run", overrides=["train.steps=5"], quiet=True)


def test_rounds_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="round 2 begins after 8 steps, and there are 4; set"):
        build_trainer(load_config(crews(tmp_path / "run", steps=8)), Reporter(quiet=True))
    with pytest.raises(UsageError, match="endless; set pool"):
        build_trainer(load_config(crews(tmp_path / "run", pool=None)), Reporter(quiet=True))
    for bad in ({"rounds": 0}, {"steps": 0}, {"tries": 0}, {"pool": 0}):
        with pytest.raises(UsageError, match="rounds, steps, tries and pool"):
            Rounds(TrainStream(Listed([Task("t", "1")])), 1, 2, **bad)
    part = Rounds(TrainStream(Listed([Task("t", "1")])), 1, 2)
    part.survey(0)
    with pytest.raises(RunError, match="before its round has begun"):
        part.next(0)
    with pytest.raises(RunError, match="of 1 tasks none has a right and a wrong response"):
        part.settle(0, [{"task": "t", "responses": [{"text": "1", "reward": 1.0, "noted": 0.5}]}])
    part.planned(0)
    Rounds(part.stream, 1, 2, rounds=1).planned(1)


def test_a_round_is_all_of_what_it_found() -> None:
    tasks = [Task(f"t{i}", str(i), meta={"kept": i}) for i in range(4)]
    part = Rounds(TrainStream(Listed(tasks)), 2, 3, rounds=3, steps=10, tries=7, seed=1)
    assert [(a.task, a.n) for a in part.survey(5)] == [(task, 7) for task in tasks] and not part.again()
    told = [{"text": "1", "reward": 1.0, "noted": 0.5}, {"text": "2", "reward": 0.0, "noted": None}]
    rows = [
        {"task": "t0", "responses": told},
        {"task": "t1", "responses": told[:1] * 2},
        {"task": "t2", "responses": told * 2},
    ]
    said = part.settle(5, rows)
    assert said == "curriculum 'rounds': round 1 of 3 learns from the responses to 2 of 3 tasks, from step 6 on"
    assert not part.again() and part.wanting is None
    asks = [ask for step in range(4) for ask in part.next(step)]
    assert {(a.task.id, a.n) for a in asks[:2]} == {("t0", 2), ("t2", 4)} and len(asks) == 8
    assert all(a.task.meta == {"kept": int(a.task.id[1]), "responses": told * (a.n // 2)} for a in asks)
    assert part.survey(14) == [] and len(part.survey(15)) == 4
    part.settle(15, rows[:1])
    assert part.again() and {a.task.id for a in part.next(15)} == {"t0"}
    other = Rounds(TrainStream(Listed(tasks)), 2, 3, rounds=3, steps=10, tries=7, seed=1)
    other.load_state_dict(part.state_dict())
    assert other.wanting == 15
    other.recall(rows[:1])
    assert other.wanting is None and other.next(16) == part.next(16)
    part.settle(25, rows)
    assert part.survey(10**6) == [], "the last round goes on to the end"


def test_what_is_noted_of_responses(make_batch) -> None:
    """Those that came to an end and were judged; and the reward is what was noted, where there is a note."""
    batch = make_batch([1] * 5, [0.9, 0.4, 0.8, 0.2, 0.7], passed=[True, False, True, None, False], groups=[0] * 5)
    batch.prompt_group[:] = 0
    stops = ["eos", "stop", "length", "eos", "eos"]
    batch.episodes = [
        replace(e, stop=s, text=str(i)) for i, (e, s) in enumerate(zip(batch.episodes, stops, strict=True))
    ]
    batch.valid[4] = False
    part = Rounds(TrainStream(Listed([Task("t", "1")])), 1, 2)
    [row] = part.look([Group(Ask(Task("t", "1"), 5), tuple(batch.episodes), tuple(batch.verdicts))], batch)
    assert row["task"] == "t" and [(r["text"], r["reward"]) for r in row["responses"]] == [("0", 1), ("1", 0), ("4", 0)]
    assert [r["noted"] for r in row["responses"]] == [0.9, 0.4, None]
    noted = Noted()
    plain = noted(batch)
    assert plain.values.tolist() == [0.9, 0.4, 0.8, 0.2, 0.7] and "noted" not in plain.terms
    for i, meta in ((0, {"noted": 0.25}), (2, {"noted": None})):
        batch.episodes[i] = replace(batch.episodes[i], meta=meta)
    found = noted(batch)
    assert found.values.tolist() == [0.25, 0.4, 0, 0.2, 0.7] and found.terms.keys() == {"noted"}
    assert found.valid.tolist()[:4] == [True, True, False, False]
    assert Noted(Confidence()).needs == Confidence().needs


def test_rounds_are_the_papers() -> None:
    method = make("S127", rounds=2)
    assert method.curriculum == {"name": "rounds", "rounds": 2, "steps": 100, "tries": 30, "pool": None}
    assert method.rollout == "recorded" and method.reward.of == make("S127").reward
    assert make("S127").curriculum == "uniform"
    defaults = Rounds(TrainStream(Listed([Task("t", "1")])), 1, 2)
    assert (defaults.rounds, defaults.steps, defaults.tries, defaults.answers) == (2, 100, 30, "single_turn")


def test_parts_go_into_other_methods() -> None:
    assert isinstance(make_method("grpo", reward="S127").reward, Confidence)
    assert make_method("S127", select={"count": 3}).select.count == 3


def test_right_responses_of_low_confidence_can_be_chosen_alone(make_batch) -> None:
    """The data filter of the paper, out of parts that are there."""
    batch = make_batch([1] * 5, [0.9, 0.4, 0.8, 0.2, 0.7], passed=[True, True, True, False, None], groups=[0] * 5)
    chain = build("select", {"name": "chain", "parts": ["verdict", {"name": "ranked", "lowest": 1}]})
    assert chain(batch).tolist() == [0, 1, 0, 0, 0]
