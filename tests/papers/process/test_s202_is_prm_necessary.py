"""S202: first errors, own solutions beside, reranking and its ties, and what a verdict is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from tiny import TOKENIZER, plain_logits, tiny

from assay.catalogue import make
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.errors import UsageError
from assay.inference.named import make_strategy
from assay.inference.scoring.base import Score
from assay.inference.scoring.scorers import BySteps
from assay.inference.voting.majority import Majority
from assay.lab.settings.reasoning._words import Words
from assay.method import make_method
from assay.papers.process.s202_is_prm_necessary import SelfPRM, TrueProbability, pick
from assay.policies.causal_lm import CausalLM
from assay.rewards.outcome.vote import Ballot
from assay.rewards.process.first_error import FirstError, marks
from assay.statistics.judging import independence, precision_of_verdicts
from assay.types import Episode, Task

RNG = np.random.default_rng(0)
A, B = "the answer is\n#### 1", "the answer is\n#### 2"


class Replies(Words):
    """An engine that replies to each prompt what a function of it says; ``None`` fails."""

    def __init__(self, reply: Callable[[str, int], str | None]):
        super().__init__()
        self.reply, self.asked = reply, []  # type: tuple[Callable[[str, int], str | None], list[Request]]

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        return [[self._one(r, j) for j in range(r.n)] for r in requests]

    def _one(self, request: Request, j: int) -> Episode:
        text = self.reply(str(request.prompt), j)
        e = self.episode(request, [text or ""])
        return e if text is not None else Episode(e.prompt, e.tokens, e.mask, None, "", "error")


class Fixed:
    """A scorer that gives values in order."""

    def __init__(self, values: Sequence[float | None]):
        self.values = values

    def score(self, pairs: Any, engine: Any, rng: Any) -> list[Score]:
        return [Score(v, 1) for v in self.values]

    def most(self, task: Task, length: int) -> int:
        return 1


def answers(texts: Sequence[str], scorer: Any) -> Any:
    engine = Replies(lambda prompt, j: texts[j])
    [found] = SelfPRM(scorer, Sampling(9))([Task("t", "q")], engine, len(texts), np.random.default_rng(0))
    return found


def test_how_far_acceptance_can_be_believed() -> None:
    """Twenty accepted of which one is right: .05; of the easy ones all three."""
    scores: list[float | None] = [1.0] * 20 + [0.0] * 5 + [1.0] * 3 + [None]
    right = [True] + [False] * 19 + [True] * 5 + [True] * 4
    groups = ["hard"] * 25 + ["easy"] * 4
    found = precision_of_verdicts(scores, right, range(29), groups)
    hard, easy = found["hard"], found["easy"]
    assert hard.share is not None and hard.share.value == pytest.approx(0.05)
    # Wilson's equation by hand, with t of 19 degrees and 19 trials: p (1 - p) over the variance p (1 - p) / 19.
    square = 2.093024**2 / 19
    ends = np.roots([1 + square, -(2 * 0.05 + square), 0.05**2])
    assert (hard.share.low, hard.share.high) == pytest.approx(tuple(sorted(ends)), abs=1e-5)
    assert (hard.judged, hard.accepted) == (25, 20)
    assert easy.share is not None and easy.share.value == 1 and easy.judged == 3, "no verdict, no judgement"
    assert precision_of_verdicts([0.2], [True], ["t"])["all"].share is None
    assert precision_of_verdicts([0.5, 0.6], [True, True], ["t", "u"])["all"].accepted == 1, "above one half"
    # Five solutions of each task that are right or wrong together say as little as one of each.
    many = precision_of_verdicts(np.repeat(scores[:20], 5), np.repeat(right[:20], 5), np.repeat(range(20), 5))["all"]
    assert many.accepted == 100 and many.share is not None
    assert (many.share.low, many.share.high) == pytest.approx((hard.share.low, hard.share.high))


def test_ties_are_voted_on() -> None:
    texts = [A, B, B, A, B]
    for constant in (0.0, 1.0, 0.3):
        assert answers(texts, Fixed([constant] * 5)).text == B, "constant scores are the majority vote"
    assert answers(texts, Fixed([1, 0, 0, 1, 1])).text == A, "two of the three accepted"
    assert answers(texts, Fixed([0.1, 0.2, 0.9, 0.3, 0.2])).text == B
    assert answers(texts, Fixed([0.1, None, None, 0.3, None])).text == A
    nothing = answers(texts, Fixed([None] * 5))
    assert nothing.text == B and nothing.meta["unscored"] == 5 and nothing.scoring == 5
    # An oracle's scores: right wherever one sample is.
    assert all(answers([B] * i + [A] + [B] * (4 - i), Fixed([0] * i + [1] + [0] * (4 - i))).text == A for i in range(5))
    # Nobody has an answer: the first of the best.
    assert pick([0.5, 1.0, 1.0], [-1, -1, -1], RNG) == 1
    assert pick([1.0, 1.0, 1.0], [0, 1, -1], RNG) == 0
    # Scores that differ by rounding alone are equal, others are not.
    assert pick([0.3, 0.1 + 0.2, 0.1 + 0.2], [0, 1, 1], RNG) == 1
    assert pick([0.3 + 1e-9, 0.3, 0.3], [0, 1, 1], RNG) == 0
    assert pick([1.2e-12, 0, 0], [0, 1, 1], RNG) == 0 and pick([0.8e-12, 0, 0], [0, 1, 1], RNG) == 1


def test_by_name_the_model_judges_itself() -> None:
    def reply(prompt: str, j: int) -> str:
        if "Proposed solution" not in prompt:
            return [A, B, B][j]
        return r"\boxed{True}" if "#### 1" in prompt else r"\boxed{False}"

    strategy = make_strategy("S202", sampling=Sampling(9))
    [found] = strategy([Task("t", "q")], Replies(reply), 3, np.random.default_rng(0))
    assert isinstance(strategy, SelfPRM) and found.text == A and found.meta["scores"] == [1, 0, 0]
    with pytest.raises(UsageError, match="no training method"):
        make_method("S202")


def test_probability_and_its_cost_by_hand() -> None:
    """P(True) = .6, P(False) = .2 of the next word: .75; a prompt that is read once, and both words."""
    asked: list[Request] = []

    class Sure(Replies):
        def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
            asked.extend(requests)
            prompt, codes = self.encode(str(requests[0].prompt)), [self.encode(w) for w in ("True", "False")]
            made = zip(codes, (0.6, 0.2), strict=True)
            return [[Episode(prompt, c, c >= 0, np.log([p]), "", "eos") for c, p in made] for _ in requests]

    engine = Sure(lambda prompt, j: None)
    token = engine.encode("x")
    pair = (Task("t", "a question"), Episode(token, token, token >= 0, None, "a {question} of its own", "eos"))
    scorer = SelfPRM("probability").scorer
    [found] = scorer.score([pair], engine, RNG)
    prompt = str(asked[0].prompt)
    assert found.value == pytest.approx(0.75) and found.tokens == len(engine.encode(prompt)) + 2
    assert "a {question} of its own" in prompt and "a question" in prompt
    assert (asked[0].n, asked[0].sampling.max_tokens, asked[0].beam) == (2, 1, True) and asked[0].within is not None
    assert scorer.score([], engine, RNG) == [] and scorer == TrueProbability()
    assert scorer.most(*pair, engine) == found.tokens
    assert scorer.most(pair[0], 7, engine) == len(engine.encode(prompt.replace("a {question} of its own", ""))) + 9
    # Words of other lengths: as many tokens as the longer has.
    TrueProbability(words=("yes it is", "no")).score([pair], Sure(lambda p, j: None), RNG)
    assert asked[-1].sampling.max_tokens == len(engine.encode("yes it is")) > 1


def test_probabilities_far_apart_are_0_and_1() -> None:
    scorer, token = TrueProbability(), np.zeros(1, dtype=np.int64)
    for true, false, expected in ((0.0, -2000.0, 1.0), (-2000.0, 0.0, 0.0), (-1.0, -1.0, 0.5)):
        replies = [Episode(token, token + i, token >= 0, np.array([v]), "", "eos") for i, v in enumerate((true, false))]
        assert scorer._score(replies, [(0,), (1,)]).value == pytest.approx(expected, abs=1e-12)
        failed = [replies[0], Episode(token, token + 1, token >= 0, np.array([0.0]), "", "error")]
        assert scorer._score(failed, [(0,), (1,)]).value is None
        unknown = [replies[0], Episode(token, token + 1, token >= 0, None, "", "eos")]
        assert scorer._score(unknown, [(0,), (1,)]).value is None
    assert scorer._score([], [(0,), (1,)]).tokens == 0


def test_without_both_words_there_is_no_score() -> None:
    scorer = TrueProbability()
    engine = Replies(lambda prompt, j: None)
    none = np.zeros(0, dtype=np.int64)
    [found] = scorer.score([(Task("t", "q"), Episode(none, none, none > 0, None, "{question}", "eos"))], engine, RNG)
    assert found.value is None and "{question}" in str(engine.asked[0].prompt)
    with pytest.raises(UsageError, match="two words"):
        TrueProbability(words=("a", "a"))
    with pytest.raises(UsageError, match="response"):
        TrueProbability(template="{question}")
    made = SelfPRM(Fixed([1.0]), Sampling(7))
    assert make("S202", sampling=Sampling(7), ballot=Ballot(("boxed",))) == SelfPRM(
        "judge", Sampling(7), Ballot(("boxed",))
    )
    assert make("S202") == SelfPRM("judge", Sampling(), Ballot()) and made.sampling == Sampling(7)


def test_the_judge_of_steps_reads_problem_and_steps() -> None:
    engine = Replies(lambda prompt, j: r"so \boxed{1}" if "wrong" in prompt else r"\boxed{-1}")
    judge = FirstError(engine)
    found = judge.find([("p", ["fine", "wrong", "later"]), ("p", ["fine"]), ("p", [])])
    assert [f.index for f in found] == [1, -1, None] and not any(f.failed for f in found)
    assert "<step 1>\nwrong\n</step 1>" in str(engine.asked[0].prompt) and len(engine.asked) == 2
    assert judge.scores([(Task("t", "p"), ["fine", "wrong", "later"]), (Task("t", "p"), [])]) == [[1, -1, -1], None]
    assert marks(-1, 2) == [1, 1] and marks(0, 1) == [-1] and marks(None, 3) is None


def test_unreadable_and_failed_replies_are_told_apart() -> None:
    replies: dict[str, str | None] = {"none": "I cannot say", "far": r"\boxed{7}", "low": r"\boxed{-2}", "down": None}
    judge = FirstError(Replies(lambda prompt, j: next(v for k, v in replies.items() if f"\n{k}\n" in prompt)))
    found = judge.find([("p", [name]) for name in replies])
    assert [(f.index, f.failed) for f in found] == [(None, False)] * 3 + [(None, True)]
    assert judge(Task("t", "p"), "down").passed is None and judge(Task("t", "p"), "").passed is None


def test_as_a_verifier_and_as_a_scorer_of_whole_responses() -> None:
    judge = FirstError(Replies(lambda prompt, j: r"\boxed{1}" if "wrong" in prompt else r"\boxed{-1}"))
    verdict = judge(Task("t", "p"), "fine\n\nwrong\n\nlater")
    assert verdict.passed is False and verdict.parts == {"step 0": 1.0, "step 1": 0.0, "step 2": 0.0}
    assert judge(Task("t", "p"), "fine").passed is True
    words = Words()
    episodes = []
    for text in ("fine\nwrong", "fine\ngood"):
        tokens = words.encode(text)
        episodes.append(Episode(tokens[:0], tokens, tokens >= 0, None, text, "eos"))
    scores = BySteps(judge).score([(Task("t", "p"), e) for e in episodes], words, RNG)  # type: ignore[arg-type]
    assert [s.value for s in scores] == [0.0, 1.0]


def test_self_ref_solves_each_problem_once_and_shows_its_solution() -> None:
    def reply(prompt: str, j: int) -> str | None:
        if prompt == "broken":
            return None
        return "my own way" if prompt in ("p", "q") else r"\boxed{0}" if "my own way" in prompt else r"\boxed{-1}"

    engine = Replies(reply)
    judge = FirstError(engine, own=True)
    found = judge.find([("p", ["a"]), ("p", ["b"]), ("q", ["a"]), ("broken", ["a"])])
    assert [(f.index, f.failed) for f in found] == [(0, False)] * 3 + [(None, True)]
    assert sum(str(r.prompt) in ("p", "q", "broken") for r in engine.asked) == 3
    with pytest.raises(UsageError, match="lacks {reference}".replace("{", r"\{").replace("}", r"\}")):
        FirstError(engine, own=True, template="{problem} {steps}")
    with pytest.raises(UsageError, match="judge must be an engine"):
        FirstError(None)


def test_solving_and_judging_go_together() -> None:
    table = ((70, 10), (8, 12))
    solved = [True] * 80 + [False] * 20
    judged = [True] * 70 + [False] * 10 + [True] * 8 + [False] * 12
    found = independence(solved, judged)
    assert found.table == table and found.chi2 == pytest.approx(21.0373, abs=1e-4)
    assert np.array(found.expected) == pytest.approx(np.array([[62.4, 17.6], [15.6, 4.4]]))
    assert found.odds == pytest.approx(70 * 12 / 80) and found.p < 1e-5 and found.exact < 1e-4
    with pytest.raises(ValueError, match="cannot be tested"):
        independence([True, True], [True, False])
    for solved, judged, odds in (("1110", "1101", 0), ("1110", "1000", math.inf), ("1110", "1110", math.inf)):
        assert independence([*map(int, solved)], [*map(int, judged)]).odds == odds  # type: ignore[list-item]
    # Independent by construction: the statistic exceeds its 95 % point in about 5 % of 400 draws (error 1.1 %).
    rng = np.random.default_rng(0)
    high = sum(independence(rng.random(200) < 0.6, rng.random(200) < 0.7).p < 0.05 for _ in range(400))  # type: ignore[arg-type]
    assert 0.02 <= high / 400 <= 0.085


def test_with_constant_scores_it_is_the_majority_on_any_samples() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        texts = [f"so\n#### {a}" for a in rng.integers(4, size=9)]
        engine = Replies(lambda prompt, j, texts=texts: texts[j])
        [vote] = Majority(Sampling(9))([Task("t", "q")], engine, 9, np.random.default_rng(0))
        assert answers(texts, Fixed([0.5] * 9)).text == vote.text


def test_probability_of_true_is_the_models() -> None:
    """Against the plain model's softmax: P(1) / (P(1) + P(0)), each with the end of the reply."""
    plain = tiny("grouped queries")
    engine = HFEngine(CausalLM(deepcopy(plain), TOKENIZER))
    scorer = TrueProbability("{question}{response}=", ("1", "0"))
    task = Task("t", "12+3")
    response = engine.encode_response("-4", end=False)
    episode = Episode(engine.encode("12+3"), response, response >= 0, None, "-4", "eos")
    [found] = scorer.score([(task, episode)], engine, RNG)
    chances = []
    for word in ("1", "0"):
        prompt, code = engine.encode("12+3-4="), engine.encode_response(word)
        with torch.no_grad():
            logp = plain_logits(plain, prompt, code).double().log_softmax(-1)
        chances.append(float(logp.gather(-1, torch.from_numpy(code)[:, None]).sum()))
    expected = 1 / (1 + np.exp(chances[1] - chances[0]))
    assert found.value == pytest.approx(expected, abs=1e-5)
    assert found.tokens > len(prompt)
