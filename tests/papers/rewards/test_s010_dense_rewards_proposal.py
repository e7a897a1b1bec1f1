"""S010: Shapley's and Owen's values from first principles, what is scored and where it is paid, the gradient's bias."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.batch import Batch
from assay.engines.base import Request
from assay.errors import RunError, UsageError
from assay.lab.settings.open_ended import keywords
from assay.method import make_method
from assay.ops import outcome
from assay.papers.rewards.s010_dense_rewards_proposal import Divided, dense_rewards
from assay.policies.tabular import TabularPolicy, Tree
from assay.returns import placed_rewards, returns_to_go
from assay.rewards.judges.reference_judge import ReferenceJudge
from assay.rewards.process.shapley import Shares, game
from assay.signals.base import Models
from assay.signals.steps import Steps
from assay.types import Ask, Episode, Group, Span, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


def decode(tokens: Sequence[int]) -> str:
    return "".join(map(chr, tokens))


class Letters(TabularPolicy):
    """A policy that stands in for a language model: a token is a character."""

    decode = staticmethod(decode)


MODELS = Models(Letters(Tree.bandit(2)))
ONE = Steps("fixed", 1)


def batch_of(texts, scores=None, passed=None, masks=None, spans=None, task=None) -> Batch:
    made = []
    for i, text in enumerate(texts):
        tokens = np.array([ord(c) for c in text], dtype=np.int64)
        mask = np.array(masks[i], dtype=bool) if masks else tokens >= 0
        episode = Episode(tokens[:0], tokens, mask, None, text, "eos", spans=spans[i] if spans else ())
        verdict = Verdict(scores[i] if scores else 1.0, passed[i] if passed else True)
        made.append(Group(Ask(task or Task(f"t{i}", "?", "ab"), 1), (episode,), (verdict,)))
    return Batch.from_groups(made, torch.float64)


def rewarded(batch: Batch, score, dense=1.0, pieces=ONE, **options) -> Batch:
    reward = Divided(Shares(score, pieces, **options), dense)
    for signal in reward.needs:
        batch.signals[signal.name] = signal(batch, MODELS)
    found = reward(batch)
    batch.rewards, batch.token_rewards, batch.valid = found.values, found.tokens, found.valid
    batch.reward_terms = found.terms
    return batch


def values_of(form, v) -> list[float]:
    """Shares of a game given by the values of its coalitions, by bit mask."""
    count = len(v).bit_length() - 1
    coalitions, weights = game(form, count)
    return (weights @ np.array([v[s] for s in coalitions])).tolist()


def averaged(v, orders) -> list[float]:
    """What each piece adds, the mean over orders: the definition."""
    count = len(v).bit_length() - 1
    total, orders = np.zeros(count), list(orders)
    for order in orders:
        before = 0
        for k in order:
            total[k] += v[before | 1 << k] - v[before]
            before |= 1 << k
    return (total / len(orders)).tolist()


def kept_together(low: int, high: int) -> list[tuple[int, ...]]:
    """The orders of an interval in which each half comes as one, and each half of these."""
    if high - low == 1:
        return [(low,)]
    middle = (low + high) // 2
    halves = [kept_together(low, middle), kept_together(middle, high)]
    return [a + b for first, second in (halves, halves[::-1]) for a, b in product(first, second)]


games = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.floats(-1, 1), min_size=2**n - 1, max_size=2**n - 1).map(lambda v: [0.0, *v])
)


@settings(max_examples=40)
@given(games)
def test_shares_are_means_over_orders_and_add_up(v) -> None:
    """Shapley over all orders, Owen over those that keep halves together; each sums to the score of the whole."""
    count = len(v).bit_length() - 1
    assert values_of("shapley", v) == pytest.approx(averaged(v, permutations(range(count))), abs=1e-9)
    assert values_of("owen", v) == pytest.approx(averaged(v, kept_together(0, count)), abs=1e-9)
    assert values_of("prefix", v) == pytest.approx(averaged(v, [range(count)]), abs=1e-9)
    for form in ("shapley", "owen", "prefix"):
        assert sum(values_of(form, v)) == pytest.approx(v[-1], abs=1e-9)


def test_worked_games() -> None:
    """The glove game; two that say the same; one that does nothing; a sum. Potentials (.2, .4, .4, .9)."""
    glove = [float(bool(s & 1) and bool(s & 6)) for s in range(8)]
    assert values_of("shapley", glove) == pytest.approx([2 / 3, 1 / 6, 1 / 6])
    assert values_of("owen", glove) == pytest.approx([1 / 2, 1 / 4, 1 / 4])
    same = [float(bool(s & 3)) for s in range(8)]
    assert values_of("shapley", same) == pytest.approx([0.5, 0.5, 0])
    weights = [0.1, 0.2, 0.7]
    total = [sum(w for k, w in enumerate(weights) if s >> k & 1) for s in range(8)]
    for form in ("shapley", "owen", "prefix"):
        assert values_of(form, total) == pytest.approx(weights)
    potential = [0.0] * 16
    for s, value in zip((1, 3, 7, 15), (0.2, 0.4, 0.4, 0.9), strict=True):
        potential[s] = value
    assert values_of("prefix", potential) == pytest.approx([0.2, 0.2, 0, 0.5])


def test_the_papers_numbers() -> None:
    method = dense_rewards()
    assert (method.credit.discount, method.credit.decay) == (1.0, 0.95)
    assert method.reward.weights["kl"] == 0.01 and isinstance(dense_rewards(kl_weight=0.0).reward, Divided)
    for shares in (method.reward.inner["shares"].shares, Shares()):
        assert (shares.score, shares.form, shares.exact, shares.most) == ("verifier", "shapley", 6, 16)
        assert shares.pieces == Steps("sentence") and shares.name == "shares"
    assert method.reward.inner["shares"].dense == 1.0
    assert dense_rewards(dense=0.0) and Divided(Shares()).dense == 1.0
    assert Shares(exact=0).exact == 0 and Shares(exact=12).exact == 12 and Shares(most=1).most == 1
    for bad in ({"exact": -1}, {"exact": 13}, {"most": 0}):
        with pytest.raises(UsageError, match="shares"):
            Shares(**bad)
    with pytest.raises(UsageError, match=r"dense -0\.1"):
        dense_rewards(dense=-0.1)


def test_the_largest_share_is_told(make_batch) -> None:
    """Shares of 0.6, -0.2 and 0.2 of a response, nothing of another, and none known of a third: sizes 1, 0 and 0."""
    batch = make_batch([3, 3, 3])
    nan = float("nan")
    batch.signals["shares"] = torch.tensor([[0.6, -0.2, 0.2], [0, 0, 0], [nan, nan, nan]], dtype=torch.float64)
    found = Divided(Shares(), 0.25)(batch)
    assert found.terms["score"].tolist() == pytest.approx([0.6, 0, 0])
    assert found.terms["largest"].tolist() == pytest.approx([0.6, 0, 0])
    assert found.values.tolist() == pytest.approx([0.45, 0, 0]) and found.valid.tolist() == [True, True, False]
    assert found.tokens.tolist()[0] == pytest.approx([0.15, -0.05, 0.05])


def test_shapley_gives_way_to_owen_beyond_the_exact_ones() -> None:
    """In the glove game of three pieces the two differ: (2/3, 1/6, 1/6) and (1/2, 1/4, 1/4)."""

    def glove(task: Task, text: str) -> float:
        return float("a" in text and ("b" in text or "c" in text))

    batch = batch_of(["abc"])
    for exact, want in ((3, [2 / 3, 1 / 6, 1 / 6]), (2, [1 / 2, 1 / 4, 1 / 4])):
        assert Shares(glove, ONE, exact=exact)(batch, MODELS)[0].tolist() == pytest.approx(want)
    assert Shares(glove, ONE, form="prefix")(batch, MODELS)[0].tolist() == [0, 1, 0]


def test_scores_needed_grow_with_the_square() -> None:
    sizes = {n: len(game("owen", n)[0]) for n in (2, 4, 8, 16, 32)}
    assert sizes[2] == 3 and all(size <= n * n for n, size in sizes.items())
    assert len(game("shapley", 6)[0]) == 63 and len(game("prefix", 6)[0]) == 6


def letters(task: Task, text: str) -> float:
    """The share of the reference's letters that a text contains."""
    return len(set(task.reference) & set(text)) / len(task.reference)


def test_pieces_are_paid_on_their_last_token() -> None:
    """ "ax", "bx", "ab": a and b are each said twice, so that each piece is worth half of what it says."""
    batch = rewarded(batch_of(["axbxab"]), letters, pieces=Steps("fixed", 2))
    assert placed_rewards(batch)[0].tolist() == pytest.approx([0, 0.25, 0, 0.25, 0, 0.5])
    assert batch.reward_terms["score"].item() == pytest.approx(1) == outcome(batch).item()
    assert batch.reward_terms["largest"].item() == pytest.approx(0.5)
    assert not bool(batch.rewards.any())


@settings(max_examples=40)
@given(st.text("abx", max_size=9), st.sampled_from(["shapley", "owen", "prefix"]), st.sampled_from([0.0, 0.3, 1.0]))
def test_what_a_response_earns_in_all_is_its_score(text, form, dense) -> None:
    """Whatever is divided, and into how many pieces: exact values, nested halves, joined neighbours, no pieces."""
    batch = rewarded(batch_of([text, "ab"]), letters, dense, form=form, exact=3, most=5)
    assert outcome(batch).tolist() == pytest.approx([letters(Task("", "", "ab"), text), 1])
    assert batch.rewards.tolist() == pytest.approx([(1 - dense) * x for x in outcome(batch).tolist()])
    if dense == 0:
        assert not bool(batch.token_rewards.any())


def test_neighbours_are_joined_beyond_the_most() -> None:
    shares = Shares(letters, ONE, most=3)
    [episode] = batch_of(["abxxxxx"]).episodes
    assert shares.borders(episode, decode) == [0, 2, 4, 7]


def test_a_tools_words_are_part_of_the_piece_that_reads_them() -> None:
    """Spans a, TT (a tool), b, T: two pieces, the second with all that is not one's own but b; paid on b."""
    spans = tuple(Span("step", a, b) for a, b in pairwise([0, 1, 3, 4, 5]))
    batch = batch_of(["aTTbT"], masks=[[1, 0, 0, 1, 0]], spans=[spans])
    asked: list[str] = []

    def score(task: Task, text: str) -> float:
        asked.append(text)
        return letters(task, text)

    shares = Shares(score, ONE)
    assert shares.borders(batch.episodes[0], decode) == [0, 1, 5]
    assert shares(batch, MODELS)[0].tolist() == pytest.approx([0.5, 0, 0, 0.5, 0])
    assert sorted(asked) == ["TTbT", "a", "aTTbT"]
    none = batch_of(["TT"], masks=[[0, 0]])
    assert not bool(shares(none, MODELS).any())


def test_the_tasks_own_verifier_scores_parts_and_the_verdict_the_whole() -> None:
    """A final answer is worth nothing without its piece: all of the reward is on it. Parts asked about once."""
    task = Task("t", "1+1", reference="2", kind="exact")
    batch = batch_of(["2", "22"], [1.0, 0.25], [True, False], task=task)
    shares = Shares("verifier", ONE)(batch, MODELS)
    assert shares[0].tolist() == [1, 0]
    # Either 2 alone is right, both together by the verdict a quarter: phi = 1/2 (1 - 0) + 1/2 (1/4 - 1).
    assert shares[1].tolist() == pytest.approx([0.125, 0.125])


def test_abstentions() -> None:
    """Of the verifier about the whole, of the scorer about a part: no reward, and no score asked for the former."""
    seen: list[str] = []

    def score(task: Task, text: str):
        seen.append(text)
        return None if text == "b" else Verdict.abstain("no") if text == "x" else letters(task, text)

    batch = rewarded(batch_of(["ab", "ax", "aa"]), score)
    assert batch.valid.tolist() == [False, False, True]
    assert not bool(batch.token_rewards[:2].any())
    failed = rewarded(batch_of(["ab"], passed=[None]), "verifier")
    assert failed.valid.tolist() == [False] and bool(failed.signals["shares"].isnan().all())
    assert rewarded(batch_of(["ab"], passed=[None]), letters).valid.tolist() == [False]


def test_a_score_that_is_no_number_names_its_task() -> None:
    with pytest.raises(RunError, match="task t0"):
        rewarded(batch_of(["ab"]), lambda task, text: float("nan"))


class Judge:
    """An engine that says 1 with probability 0.9 to texts with an a, and 0 surely to others."""

    def encode(self, prompt: object) -> np.ndarray:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        raise NotImplementedError

    def decode(self, tokens: Sequence[int]) -> str:
        return decode(tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            good = "a" in str(request.prompt).rpartition("Answer: ")[2]
            tokens = np.array([ord("1" if good else "0")])
            logprobs = np.log(np.array([0.9 if good else 1.0], dtype=np.float32))
            out.append([Episode(tokens[:0], tokens, tokens > 0, logprobs, decode(tokens), "eos")])
        return out


def test_a_judge_scores_the_parts_in_one_call() -> None:
    method = dense_rewards(Judge(), ONE, kl_weight=0.0)
    assert isinstance(method.reward.shares.score, ReferenceJudge)
    batch = batch_of(["xa", "xx"])
    found = method.reward.shares(batch, MODELS)
    assert found[0].tolist() == pytest.approx([0, 0.9]) and found[1].tolist() == pytest.approx([0, 0], abs=1e-7)


def expected_gradient(policy: TabularPolicy, scores, form: str) -> torch.Tensor:
    """E[sum_t grad log pi_t (rewards from t on)] by enumeration."""
    total = torch.zeros_like(policy.logits)
    coalitions, weights = game(form, policy.tree.depth)
    for leaf, path in enumerate(policy.tree.paths):
        v = [scores([t for k, t in enumerate(path) if s >> k & 1]) for s in coalitions]
        shares = torch.tensor((weights @ np.array(v))[None])
        mask = torch.ones_like(shares, dtype=torch.bool)
        returns = returns_to_go(shares, mask)[0]
        logp = policy.log_policy()
        nodes = policy.tree.nodes[leaf]
        surrogate = sum(returns[t] * logp[nodes[t], path[t]] for t in range(len(path)))
        [gradient] = torch.autograd.grad(surrogate, policy.logits)
        total = total + policy.leaf_logprobs()[leaf].exp().detach() * gradient
    return total


def test_returns_of_shares_estimate_the_gradient_where_the_score_is_a_sum_or_its_differences() -> None:
    """Exactly for sums, and for prefixes of any score; not for Shapley's values of pieces that say the same."""
    tree = Tree.uniform(3, 3)

    def additive(words):
        return sum({0: 0.0, 1: 0.2, 2: 0.7}[w] for w in words)

    def covered(words):
        return len({1, 2} & set(words)) / 2

    for scores, form, unbiased in (
        (additive, "shapley", True),
        (additive, "owen", True),
        (covered, "prefix", True),
        (covered, "shapley", False),
    ):
        policy = TabularPolicy.random(tree, 3)
        rewards = torch.tensor([scores(path) for path in tree.paths], dtype=torch.float64)
        exact, found = policy.exact_gradient(rewards), expected_gradient(policy, scores, form)
        assert torch.allclose(exact, found, atol=1e-10) == unbiased
        # Still much the same direction, and the first decision's gradient is exact: nothing comes before it.
        assert torch.nn.functional.cosine_similarity(exact.flatten(), found.flatten(), dim=0) > 0.9
        assert torch.allclose(exact[0], found[0], atol=1e-10)


def test_options() -> None:
    with pytest.raises(UsageError, match="dense 2"):
        dense_rewards(dense=2.0)
    for bad in ({"exact": 13}, {"most": 0}, {"score": 3}, {"score": "no_such_file.py:f"}):
        with pytest.raises(UsageError):
            Shares(**bad)
    made = make_method("S010", reward={"name": "S010", "form": "prefix", "kl_weight": 0.0}).reward
    assert made.shares.form == "prefix" and made.shares.pieces == Steps("sentence")


def test_the_settings_score(tmp_path) -> None:
    """It starts as enumeration says, and an arm is given the score of parts."""
    setting = keywords.Setting(words=4, length=3, wanted=2, spread=0.0, steps=2)
    # A wanted word is missed by three draws of four words with chance (3/4)^3.
    arms = [
        {"name": "S010", "reward": {"name": "S010", "score": "here", "pieces": {"by": "fixed", "size": 1}}},
        {"name": "S010", "reward": "verdict"},
    ]
    runs = [setting.run(arm, 0, tmp_path) for arm in arms]
    for run in runs:
        assert run["start"] == pytest.approx(1 - 0.75**3)
        assert run["rollouts"] == 2 * 2 * 8
    assert runs[0]["score"] != runs[1]["score"]
    with pytest.raises(UsageError, match="keywords"):
        keywords.Setting(wanted=5, length=4)


def test_it_acts_in_training(tmp_path) -> None:
    """A quarter more of the wanted words after ten steps than at the start."""
    setting = keywords.Setting(words=4, length=3, wanted=2, spread=0.0, steps=10, lr=30.0)
    reward = {"name": "S010", "score": "here", "pieces": {"by": "fixed", "size": 1}, "kl_weight": 0.0}
    found = setting.run({"name": "S010", "reward": reward}, 0, tmp_path)
    assert found["score"] > 1.25 * found["start"]
