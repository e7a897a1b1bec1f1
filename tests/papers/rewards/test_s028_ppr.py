"""PPR: rewards of turns by hand, whose sign the outcome decides, what a turn is, what a judge is asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from running import metrics, run

from assay.batch import Batch
from assay.catalogue.claim import claim_of
from assay.credit.gae import generalised_advantages
from assay.engines.base import Request
from assay.errors import RunError, UsageError
from assay.lab.settings.reasoning import steps
from assay.method import make_method
from assay.ops import group_mean, outcome
from assay.papers.rewards.s028_ppr import ReNorm, Turns, Undecided, ppr
from assay.policies.tabular import TabularPolicy, Tree
from assay.returns import placed_rewards, returns_to_go
from assay.rewards.judges.principles import PrincipleJudge, distillation, read_share
from assay.rewards.process.step_scores import FunctionScorer, StepScores, make_scorer, of_verdict
from assay.signals.base import Models
from assay.signals.steps import Steps
from assay.types import Ask, Episode, Group, Task, Turn, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


def decode(tokens: Sequence[int]) -> str:
    return "".join(map(chr, tokens))


class Letters(TabularPolicy):
    """A policy that stands in for a language model: a token is a character."""

    decode = staticmethod(decode)


MODELS = Models(Letters(Tree.bandit(2)))


def batch_of(shares, passed, sizes=None, groups=None) -> Batch:
    """Responses of turns with the given scores in [0, 1] as verdict parts; two tokens a turn unless told."""
    made = []
    for i, (row, right) in enumerate(zip(shares, passed, strict=True)):
        borders = np.cumsum([0, *(sizes[i] if sizes else [2] * len(row))])
        turns = tuple(Turn(t, int(a), int(b)) for t, (a, b) in enumerate(pairwise(borders)))
        tokens = np.full(borders[-1], ord("x"), dtype=np.int64)
        key = str(groups[i] if groups else 0)
        episode = Episode(tokens[:0], tokens, tokens > 0, None, "", "eos", turns=turns, advantage_group=key)
        verdict = Verdict(float(bool(right)), right, {f"step {k}": p for k, p in enumerate(row)})
        made.append(Group(Ask(Task(str(i), "", "1"), 1), (episode,), (verdict,)))
    return Batch.from_groups(made, torch.float64)


def rewarded(batch: Batch, scorer="verdict", **options) -> Batch:
    reward = ReNorm(scorer, Turns(), **options)
    for signal in reward.needs:
        batch.signals[signal.name] = signal(batch, MODELS)
    found = reward(batch)
    batch.rewards, batch.token_rewards, batch.valid, batch.reward_terms = (
        found.values,
        found.tokens,
        found.valid,
        found.terms,
    )
    return batch


def by_turn(batch: Batch, row: int = 0) -> list[float]:
    """What is on the last token of each turn of two tokens."""
    placed = placed_rewards(batch)[row]
    assert not bool(placed[0::2].any())
    return placed[1::2].tolist()


def test_the_papers_numbers() -> None:
    method = ppr()
    assert (method.credit.discount, method.credit.decay) == (1.0, 1.0)
    assert method.reward.weights["kl"] == 1e-3 and set(method.reward.inner) == {"turns", "kl"}
    turns = method.reward.inner["turns"]
    assert (turns.renorm, turns.shift, turns.judge_last) == (True, 1.0, False)
    assert turns.turns == Turns() == Turns("tag", tag="search")
    assert isinstance(turns.scores.scorer, Undecided) and isinstance(ppr(kl_weight=0.0).reward, ReNorm)
    assert turns.scores.scorer.scores([(TASK, ["a", "b"]), (TASK, [])]) == [[0.0, 0.0], []]
    made = ReNorm("verdict", Turns())
    assert (made.renorm, made.shift, made.judge_last) == (True, 1.0, False)
    judge = Judge({})
    asked = ppr(judge, judge_last=True, unread="zero").reward.inner["turns"].scores.scorer
    assert (asked.last, asked.unread, asked.sampling.max_tokens, asked.sampling.temperature) == (True, "zero", 4096, 0)
    assert PrincipleJudge(judge).last is False and PrincipleJudge(judge).unread == "abstain"


def test_what_is_told_of_turns() -> None:
    """Half a score is an outcome of half; turns of 0.2 and 0.8 before the last, of a mean of 0.5."""
    batch = batch_of([[0.2, 0.8, 1.0]], [True])
    batch.verdicts = [Verdict(0.5, True, batch.verdicts[0].parts)]
    rewarded(batch)
    assert by_turn(batch) == pytest.approx([-0.3, 0.3, 0.5])
    assert batch.reward_terms["process"].tolist() == pytest.approx([0.5])
    assert batch.reward_terms["outcome"].tolist() == [0.5]
    last = rewarded(batch_of([[0.2, 0.8, 1.0]], [True]), judge_last=True)
    assert last.reward_terms["process"].tolist() == pytest.approx([2 / 3]) and last.rewards.tolist() == [0]
    added = rewarded(batch_of([[0.2, 0.8]], [True]), renorm=False, judge_last=True)
    assert added.rewards.tolist() == [1] and by_turn(added) == pytest.approx([0.2, 1.8])
    two = rewarded(batch_of([[0.3, 0.8]], [False]))
    assert two.reward_terms["process"].tolist() == pytest.approx([0.3])
    one = rewarded(batch_of([[0.2]], [True]))
    assert one.reward_terms["process"].tolist() == [0] and one.reward_terms["count"].tolist() == [1]


def test_scores_of_steps_by_whom_they_come() -> None:
    """From verdicts only if there is one for every step; from a function one finite number each; else said why."""
    assert of_verdict(Verdict(1.0, True, {"step 0": 0.75, "step 1": 0.0}), 2) == [0.5, -1]
    assert of_verdict(Verdict(1.0, True, {"step 0": 0.75}), 2) is None and of_verdict(Verdict(1.0, True, {}), 0) == []
    assert of_verdict(Verdict(1.0, True, {"step 0": None}), 1) is None
    batch = batch_of([[0.5, 0.5]], [True])
    found = StepScores(lambda task, steps: [0.25 * len(s) for s in steps], Turns())(batch, MODELS)
    assert found.tolist() == [[0, 0.5, 0, 0.5]]
    assert StepScores(lambda task, steps: None, Turns())(batch, MODELS).isnan().all()
    for bad in ([0.5], [0.5, 0.5, 0.5], [0.5, float("nan")]):
        with pytest.raises(RunError, match=r"row 0 \(task 0\)"):
            StepScores(lambda task, steps, bad=bad: bad, Turns())(batch, MODELS)

    class Short:
        def scores(self, responses):
            return []

    with pytest.raises(RunError, match="0 of 1"):
        StepScores(Short(), Turns())(batch, MODELS)

    def fails(task, steps):
        raise ValueError("so\nwhat")

    with pytest.raises(RunError, match="ValueError: so what for a response to task 0"):
        StepScores(fails, Turns())(batch, MODELS)
    for bad in (3, lambda one: 1):
        with pytest.raises(UsageError, match="scorer of steps"):
            make_scorer(bad)
    scorer = FunctionScorer(lambda task, steps: [1])
    assert make_scorer(scorer) is scorer and StepScores().scorer == "verdict"


def test_rewards_and_returns_by_hand() -> None:
    """Three judged turns: right (.9, .4, .7), returns (2, 1.1, .7); wrong (-.1, -.6, -.3), returns (-1, -.9, -.3)."""
    batch = rewarded(batch_of([[0.9, 0.4, 0.7]] * 2, [True, False]), judge_last=True)
    assert by_turn(batch, 0) == pytest.approx([0.9, 0.4, 0.7])
    assert by_turn(batch, 1) == pytest.approx([-0.1, -0.6, -0.3])
    zeros = torch.zeros(2, 6, dtype=torch.float64)
    advantages, _ = generalised_advantages(placed_rewards(batch), zeros, batch.mask, 1.0, 1.0)
    assert advantages[0, 0::2].tolist() == pytest.approx([2.0, 1.1, 0.7])
    assert advantages[1, 0::2].tolist() == pytest.approx([-1.0, -0.9, -0.3])


def test_the_last_turn_answers_and_has_the_outcome_alone() -> None:
    batch = rewarded(batch_of([[0.9, 0.4, 0.7, 0.123]] * 2, [True, False]))
    assert by_turn(batch, 0) == pytest.approx([0.9, 0.4, 0.7, 1.0])
    assert by_turn(batch, 1) == pytest.approx([-0.1, -0.6, -0.3, 0.0])
    plain = rewarded(batch_of([[0.9, 0.4, 0.7, 0.123]] * 2, [True, False]), renorm=False)
    assert by_turn(plain, 0) == pytest.approx([0.9, 0.4, 0.7, 1.0])
    assert by_turn(plain, 1) == pytest.approx([0.9, 0.4, 0.7, 0.0])
    assert batch.reward_terms["process"].tolist() == pytest.approx([2 / 3] * 2)
    assert batch.reward_terms["count"].tolist() == [4, 4]
    # A response of one turn is judged by its outcome, as without a judge of turns.
    assert by_turn(rewarded(batch_of([[0.3]], [True]))) == [1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.booleans(), st.booleans())
def test_the_outcome_decides_the_sign_of_every_turn(shares, right, judge_last) -> None:
    batch = rewarded(batch_of([shares], [right]), judge_last=judge_last)
    rewards = torch.tensor(by_turn(batch))
    assert bool((rewards >= -1e-12).all() if right else (rewards <= 1e-12).all())
    total = float(outcome(batch)[0])
    assert -1e-9 <= total <= len(shares) + 1e-9 if right else -len(shares) - 1e-9 <= total <= 1e-9


def test_the_shift_cancels_in_a_groups_mean_only_where_turns_are_as_many() -> None:
    def centred(shares, shift):
        batch = rewarded(batch_of(shares, [True, False]), shift=shift, judge_last=True)
        total = outcome(batch)
        return (total - group_mean(total, batch.group, batch.active)).tolist()

    alike, unlike = [[0.5, 0.5], [0.2, 0.9]], [[0.5, 0.5, 0.5], [0.2]]
    assert centred(alike, 1.0) == pytest.approx(centred(alike, 0.0))
    assert centred(unlike, 1.0) == pytest.approx([x + s for x, s in zip(centred(unlike, 0.0), [-1, 1], strict=True)])


def test_a_tools_words_belong_to_the_turn_that_reads_them_and_are_not_learned() -> None:
    """Turn, four tokens of a tool, turn: the second turn reads them; the reward is on the last own token of each."""
    turns = (Turn(0, 0, 2), Turn(1, 6, 8))
    tokens = np.array([ord(c) for c in "abTTTTcd"])
    mask = np.array([True] * 2 + [False] * 4 + [True] * 2)
    episode = Episode(tokens[:0], tokens, mask, None, "", "eos", turns=turns)
    assert [decode(tokens[s.start : s.end]) for s in Turns().of(episode, decode)] == ["ab", "TTTTcd"]
    group = Group(Ask(Task("t", ""), 1), (episode,), (Verdict(1.0, True, {"step 0": 0.25, "step 1": 0}),))
    batch = rewarded(Batch.from_groups([group], torch.float64))
    placed = placed_rewards(batch)[0]
    assert placed.tolist() == [0, 0.25, 0, 0, 0, 0, 0, 1]
    assert returns_to_go(placed[None], batch.mask)[0].tolist() == [1.25, 1.25, 0, 0, 0, 0, 1, 1]
    # A tool has the last word: the last turn of one's own is still the last.
    cut = Episode(tokens[:0], tokens[:6], mask[:6], None, "", "length", turns=turns[:1])
    group = Group(Ask(Task("t", ""), 1), (cut,), (Verdict(0.0, False, {"step 0": 0.25}),))
    assert not bool(placed_rewards(rewarded(Batch.from_groups([group], torch.float64))).any())


def test_a_turn_without_a_token_is_none() -> None:
    """What a tool said before the policy's next token belongs to the turn that has it."""
    tokens = np.array([ord(c) for c in "abTTcd"])
    turns = (Turn(0, 0, 2), Turn(1, 4, 4), Turn(2, 4, 6))
    episode = Episode(tokens[:0], tokens, tokens != ord("T"), None, "", "eos", turns=turns)
    assert [(s.start, s.end) for s in Turns().of(episode, decode)] == [(0, 2), (2, 6)]


def test_without_spans_a_turn_ends_with_its_search() -> None:
    text = "<think>a</think><search>b</search><information>c</information><think>d</think><answer>e</answer>"
    tokens = np.array([ord(c) for c in text])
    episode = Episode(tokens[:0], tokens, tokens > 0, None, text, "eos")
    first, last = (decode(tokens[s.start : s.end]) for s in Turns().of(episode, decode))
    assert first.endswith("</search>") and last.startswith("<information>") and first + last == text
    assert len(Turns(by="fixed", size=10).of(episode, decode)) == len(Steps("fixed", 10).of(episode, decode))


class Judge:
    """An engine that replies to a turn what it was told to; remembers what it was asked."""

    def __init__(self, said: dict[str, str], stop: str = "eos"):
        self.said, self.stop, self.asked = said, stop, list[str]()

    def encode(self, prompt: object) -> np.ndarray:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        raise NotImplementedError

    def decode(self, tokens: Sequence[int]) -> str:
        raise NotImplementedError

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            assert isinstance(request.prompt, str) and request.sampling.temperature == 0
            self.asked.append(request.prompt)
            turn = request.prompt.partition("The turn:\n")[2].partition("\n\nReply")[0]
            none = np.zeros(0, dtype=np.int64)
            out.append([Episode(none, none, none > 0, None, self.said[turn], self.stop)])
        return out


def score(text: str) -> str:
    return f"Analysis: so.\nScores: <final_score>{text}</final_score>"


TASK = Task("t", "Who?", "1")


def test_the_judge_reads_question_past_and_turn_but_not_the_answer() -> None:
    judge = Judge({"a {turn}": score("4,6"), "b": "<final_score>9,9</final_score> or rather " + score("0,5")})
    found = PrincipleJudge(judge).scores([(TASK, ["a {turn}", "b", "answer"]), (TASK, ["a {turn}", "other"])])
    assert found[0] == pytest.approx([2 * 4 / 6 - 1, -1, 0]) and found[1] == pytest.approx([2 * 4 / 6 - 1, 0])
    assert len(judge.asked) == 2, "equal turns after equal pasts are asked about once"
    assert "Question: Who?\n\nBefore this turn:\nnothing\n\nThe turn:\na {turn}\n" in judge.asked[0]
    assert "Before this turn:\na {turn}\n\nThe turn:\nb\n" in judge.asked[1]
    assert PrincipleJudge(Judge({"only": score("1,2")}), last=True).scores([(TASK, ["only"])]) == [[0.0]]


@pytest.mark.parametrize(
    ("reply", "share"),
    [
        (score("4,6"), 4 / 6),
        (score(" 2.5 , 5 "), 0.5),
        (score("0,3"), 0.0),
        (score("1,1"), 1.0),
        (score("7,6"), None),
        (score("0,0"), None),
        (score("-1,6"), None),
        (score("good"), None),
        ("4,6", None),
        ("", None),
    ],
)
def test_a_score_is_read_if_it_is_one(reply: str, share: float | None) -> None:
    assert read_share(reply) == (None if share is None else pytest.approx(share))


def test_an_unread_turn_and_a_judge_that_fails() -> None:
    """Either leaves the response without a reward, and its sibling with one; the authors take an unread turn for 0."""
    said = {"x": score("1,2"), "y": "I would say good"}
    responses = [(TASK, ["x", "y", "end"]), (TASK, ["x", "end"])]
    assert PrincipleJudge(Judge(said)).scores(responses) == [None, [0.0, 0.0]]
    assert PrincipleJudge(Judge(said), unread="zero").scores(responses) == [[0.0, -1.0, 0.0], [0.0, 0.0]]
    for unread in ("abstain", "zero"):
        assert PrincipleJudge(Judge(said, stop="error"), unread=unread).scores(responses) == [None, None]

    class Half:
        def scores(self, responses):
            return [None, *([0.0] * len(steps) for _, steps in responses[1:])]

    batch = rewarded(batch_of([[0.5, 0.5]] * 2, [True, True]), Half())
    assert batch.valid.tolist() == [False, True]
    assert not bool(batch.token_rewards[0].any()) and by_turn(batch, 1) == pytest.approx([0.5, 1])


def test_a_teacher_labels_turns_that_it_can_score() -> None:
    judge = Judge({"x": score("1,2"), "y": "I would say good"})
    tasks = distillation([(TASK, ["x", "y", "end"]), (TASK, ["x", "end"])], PrincipleJudge(judge))
    assert [(t.prompt, t.solution) for t in tasks] == [(judge.asked[0], score("1,2"))]
    assert distillation([(TASK, ["x", "end"])], PrincipleJudge(Judge({"x": score("1,2")}, stop="error"))) == []


def test_an_abstention_of_the_verifier_has_no_reward() -> None:
    assert rewarded(batch_of([[0.5, 0.5]] * 2, [None, True])).valid.tolist() == [False, True]


def test_the_method_finds_its_judge() -> None:
    judge = Judge({})
    for method in (ppr(judge), ppr()):
        assert method.credit.decay == 1 and {"values", "step_scores", "steps"} <= {
            getattr(n, "name", n) for n in method.needs
        }
    scorer = make_method("S028", reward={"name": "S028", "judge": judge, "kl_weight": 0.0}).reward.scores.scorer
    assert isinstance(scorer, PrincipleJudge) and scorer.engine is judge
    turns = {"by": "fixed", "size": 3}
    made = make_method("S028", reward={"name": "S028", "judge": "verdict", "turns": turns, "kl_weight": 0.0})
    assert made.reward.turns == Turns("fixed", 3)


def test_the_setting_measures_training_too(tmp_path) -> None:
    """After one step the mean over training is what was reached; arms that differ in ``renorm`` learn otherwise."""
    claim = claim_of("S028")
    setting = steps.Setting(**{**claim.options, "steps": 1, "lr": 30.0})
    runs = {name: setting.run(arm, 3, tmp_path) for name, arm in claim.arms.items()}
    for found in runs.values():
        assert found["area"] == found["solved"] and found["rollouts"] == 4
    assert len({found["solved"] for found in runs.values()}) == 3


def test_options() -> None:
    with pytest.raises(UsageError, match=r"judge of turns.*turn"):
        PrincipleJudge(Judge({}), template="judge this")
    with pytest.raises(UsageError, match=r"judge of turns.*engine"):
        PrincipleJudge(object())


def test_it_acts_in_training(tmp_path) -> None:
    """From 0.30 right answers to more than half, though the judge prefers turns that lead nowhere."""
    claim = claim_of("S028")
    setting = steps.Setting(**{**claim.options, "steps": 20, "lr": 3.0})
    found = setting.run(claim.arms["renorm"], 1, tmp_path)
    assert found["start/solved"] < 0.31 and found["solved"] > 0.5


WORLD = '''
from dataclasses import replace

from assay.environments.search.environment import Search
from assay.tasks.listed import Listed

TURNS = ("<think>x</think>\\n<search>x</search>", "<think>x</think>\\n<answer>1</answer>")


class Short(Search):
    """Questions in few words; half of them have a solution that searches, and half one that answers."""

    def tasks(self):
        found = super().tasks()
        short = [(found[i % 2], f"{i}. " + found[i % 2].prompt.partition("?")[0]) for i in range(16)]
        made = [replace(t, id=words, prompt=words, solution=TURNS[i % 2]) for i, (t, words) in enumerate(short)]
        return Listed(made)
'''


def by_search(task: Task, turns: Sequence[str]) -> list[float]:
    """Scores in [-1, 1]: 1 for a turn that ends with a search."""
    return [1.0 if turn.rstrip().endswith("</search>") else -1.0 for turn in turns]


@pytest.mark.slow
def test_it_trains_by_searching(tmp_path: Path) -> None:
    """Some turns search, some answer; each is judged, and none of what was found is learned."""
    rows = {
        "corpus": [{"id": "a", "title": "A", "text": "x is 1"}, {"id": "b", "title": "B", "text": "y is 2"}],
        "questions": [{"question": "What is x?", "answer": "1"}, {"question": "What is y?", "answer": "2"}],
    }
    (tmp_path / "world.py").write_text(WORLD)
    environment: dict[str, Any] = {"name": f"{tmp_path / 'world.py'}:Short", "protocol": "tags", "searches": 2}
    for name, table in rows.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
        environment[name] = str(tmp_path / f"{name}.jsonl")
    reward = {"name": "S028", "judge": f"{Path(__file__)}:by_search"}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 500}},
        tasks={"source": {"name": "environment", "environment": environment}, "eval_share": 0.3, "eval_size": 1},
        warmup={"steps": 60, "batch": 4, "lr": 1e-2},
        method={
            "name": "S028",
            "reward": reward,
            "rollout": {"name": "multi_turn", "environment": environment, "turns": 3},
        },
        rollout={"prompts": 2, "group": 6, "max_tokens": 50, "temperature": 0.6},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    found = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert all(m["environment/turns"] > 1 and m["environment/lost"] == 0 and m["grad_norm"] > 0 for m in found)
    assert all(m["reward/turns/count"] == m["environment/turns"] for m in found)
    assert any(0 < m["reward/turns/process"] < 1 for m in found)
