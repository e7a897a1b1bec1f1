"""Scorers, what names and tables stand for, and what scoring costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine
from assay.errors import RunError, UsageError
from assay.inference.heads.value_head import ByValueHead, ValueHead
from assay.inference.named import make_strategies, make_strategy, read_spec, split_outside
from assay.inference.scoring.base import Score, best, mean_logprob
from assay.inference.scoring.judge import Judge
from assay.inference.scoring.scorers import ByFunction, BySteps, ByVerifier, Confidence, as_scorer, reduced
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.step_models.states import states, width
from assay.signals.steps import Steps
from assay.types import Episode, Task, Verdict
from assay.verify.critique import said

RNG = np.random.default_rng(0)
TASK = Task("t", "1+1=", reference="2")
ENGINE = TabularEngine(TabularPolicy(Tree.bandit(2)))


def episode(text: str, logprobs: Sequence[float] = (), stop: Any = "eos") -> Episode:
    n = len(logprobs)
    prompt = np.zeros(3, dtype=np.int64)
    lp = np.array(logprobs, dtype=np.float32)
    return Episode(prompt, np.zeros(n, dtype=np.int64), np.ones(n, dtype=bool), lp, text, stop)


class Scripted:
    """An engine that says what it is told to, in turn, a word a token."""

    def __init__(self, *replies: str):
        self.replies, self.asked = list(replies), []  # type: tuple[list[str], list[Request]]

    def encode(self, prompt: Any) -> np.ndarray:
        return np.zeros(len(str(prompt).split()), dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.zeros(len(text.split()), dtype=np.int64)

    def decode(self, tokens: Any) -> str:
        return " ".join("w" for _ in tokens)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        out = []
        for r in requests:
            texts = [self.replies.pop(0) for _ in range(r.n)]
            out.append(
                [
                    Episode(
                        self.encode(r.prompt),
                        np.zeros(len(t.split()), dtype=np.int64),
                        np.ones(len(t.split()), dtype=bool),
                        None,
                        t,
                        "eos",
                    )
                    for t in texts
                ]
            )
        return out


def test_a_judge_is_the_mean_of_its_readable_critiques_and_costs_what_it_reads_and_writes() -> None:
    judge = Scripted(r"fine \boxed{True}", r"no, \boxed{False}", "I wonder", r"well \boxed{ true }")
    scorer = Judge(judge, n=4, template="{question} {response} ?")
    [score] = scorer.score([(TASK, episode("it is 2"))], ENGINE, RNG)
    assert score.value == pytest.approx(2 / 3)
    # Reads "1+1= it is 2 ?" once, five words, and writes 2 + 2 + 2 + 4.
    assert score.tokens == 5 + 10
    assert judge.asked[0].prompt == "1+1= it is 2 ?"
    [none] = Judge(Scripted("hm", "ah"), n=2).score([(TASK, episode("2"))], ENGINE, RNG)
    assert none.value is None and none.tokens > 0
    assert "reference" not in scorer.template


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (r"\boxed{True}", True),
        (r"first \boxed{True} then \boxed{False}", False),
        (r"\boxed{\text{true}}", True),
        ("True", None),
        (r"\boxed{maybe}", None),
        ("", None),
    ],
)
def test_what_a_critique_says(reply: str, verdict: bool | None) -> None:
    assert said(reply) is verdict


def test_a_verifier_that_abstains_gives_no_score() -> None:
    def verifier(task: Task, response: str) -> Verdict:
        return Verdict.abstain("timed out") if response == "?" else Verdict(0.25, False, {}, "close")

    pairs = [(TASK, episode("?")), (TASK, episode("3")), (TASK, episode("3", stop="error"))]
    found = ByVerifier(verifier).score(pairs, ENGINE, RNG)
    assert [s.value for s in found] == [None, 0.25, None]
    assert found[1].feedback == "close"
    assert [s.value for s in ByFunction(verifier).score(pairs[:2], ENGINE, RNG)] == [None, 0.25]


def test_confidence_is_exp_of_the_mean_log_probability() -> None:
    e = episode("x", [-1.0, -3.0])
    values = [c.score([(TASK, e)], ENGINE, RNG)[0].value for c in (Confidence(), Confidence(total=True))]
    assert values == pytest.approx([np.exp(-2.0), np.exp(-4.0)])
    assert Confidence(negative=True).score([(TASK, e)], ENGINE, RNG)[0].value == pytest.approx(-np.exp(-2.0))
    assert mean_logprob(episode("")) is None


def test_step_scores_are_reduced() -> None:
    assert reduced([0.9, 0.8, 0.95], "min") == 0.8
    assert reduced([0.9, 0.8, 0.95], "product") == pytest.approx(0.684)
    assert reduced([0.99, 0.5, 0.99], "product") == pytest.approx(0.49005)
    assert reduced([0.9, 0.8, 0.95], "last") == 0.95
    assert reduced([0.5, 0.25], "mean") == 0.375
    policy = TabularPolicy(Tree.uniform(2, 2))
    engine = TabularEngine(policy)
    [[e]] = engine.generate([Request("", 1, Sampling(2), 0)])
    # Scores in [-1, 1] become probabilities first: 0.5 -> 0.75, -0.5 -> 0.25.
    scorer = BySteps(lambda task, steps: [0.5, -0.5][: len(steps)], Steps("fixed", size=1), "product")
    [score] = scorer.score([(TASK, e)], engine, RNG)
    assert score.value == pytest.approx(0.75 * 0.25)
    assert score.tokens == len(e.tokens)


def test_what_a_scorer_may_be_called(tmp_path: Path) -> None:
    assert isinstance(as_scorer("verifier"), ByVerifier)
    assert isinstance(as_scorer("confidence"), Confidence)
    assert as_scorer({"name": "judge", "n": 4}).n == 4  # type: ignore[attr-defined]
    assert isinstance(as_scorer(Scripted()), Judge)
    assert isinstance(as_scorer(lambda task, response: 1.0), ByFunction)
    file = tmp_path / "mine.py"
    file.write_text("def length(task, response):\n    return len(response)\n")
    [score] = as_scorer(f"{file}:length").score([(TASK, episode("abc"))], ENGINE, RNG)
    assert score.value == 3
    for wrong in ("judges", {"name": "judge", "m": 3}, 3, {"n": 3}):
        with pytest.raises(UsageError):
            as_scorer(wrong)
    with pytest.raises(RunError, match="task t"):
        ByFunction(lambda task, response: 1 / 0).score([(TASK, episode("x"))], ENGINE, RNG)
    with pytest.raises(RunError, match="nan"):
        ByFunction(lambda task, response: float("nan")).score([(TASK, episode("x"))], ENGINE, RNG)


def test_the_best_is_the_first_of_equals_among_what_has_a_score() -> None:
    assert best([Score(None), Score(1.0), Score(2.0), Score(2.0)]) == 2
    assert best([Score(None)]) is None


def test_strategies_are_read_from_what_people_write() -> None:
    assert split_outside("a,b(c=[1,2],d='x,y'),S043") == ["a", "b(c=[1,2],d='x,y')", "S043"]
    assert read_spec("best_of_n(scorer=judge, scorer.n=4, least=0.5)") == {
        "name": "best_of_n",
        "scorer": {"name": "judge", "n": 4},
        "least": 0.5,
    }
    assert list(make_strategies("greedy,majority(least=0.5)")) == ["greedy", "majority(least=0.5)"]
    for wrong in ("best_of", "majority(least)", "majority(most=1)", "", "a b", "majority,majority", "S014"):
        with pytest.raises(UsageError):
            make_strategies(wrong)
    made = make_strategy("majority")
    assert make_strategy(made) is made


def test_the_state_after_a_token_is_what_the_next_one_is_predicted_from() -> None:
    """Against transformers' own hidden states, and the nodes and leaves of a tree."""
    torch.manual_seed(0)
    policy = CausalLM.load(ModelConfig(source="nano", nano={"hidden": 16, "layers": 2, "heads": 2, "context": 64}), 0)
    engine = HFEngine(policy)
    prompt, tokens = policy.encode("1+2="), [np.array([5, 6, 7]), np.array([8]), np.array([], dtype=np.int64)]
    episodes = [Episode(prompt, t, np.ones(len(t), dtype=bool), None, "", "eos") for t in tokens]
    found = states(policy, episodes)
    for t, h in zip(tokens, found, strict=True):
        assert h.shape == (len(t), 16)
        ids = torch.from_numpy(np.concatenate([prompt, t]))[None]
        plain = plain_states(policy, ids)[0, len(prompt) :]
        assert torch.allclose(h, plain, atol=1e-4)
    head = ValueHead(width(policy))
    assert [s.value for s in ByValueHead(head).score([(TASK, e) for e in episodes], engine, RNG)] == [0.5, 0.5, None]

    tree = Tree.of([[0, 1], 1])
    table = TabularPolicy(tree)
    paths = [
        Episode(np.array([], dtype=np.int64), np.array(p), np.ones(len(p), dtype=bool), None, "", "eos")
        for p in ([0, 1], [1])
    ]
    first, second = states(table, paths)
    # Two nodes and three leaves: node 1 and leaf 1; leaf 2.
    assert first.argmax(-1).tolist() == [1, 3]
    assert second.argmax(-1).tolist() == [4]
    assert width(table) == 5


def plain_states(policy: CausalLM, ids: torch.Tensor) -> torch.Tensor:
    """Hidden states of the same weights with transformers' own attention."""
    from copy import deepcopy

    model = deepcopy(policy.model)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return model.base_model(input_ids=ids, use_cache=False).last_hidden_state


def test_a_value_head_is_kept_in_a_file(tmp_path: Path) -> None:
    head = ValueHead(4)
    torch.nn.init.normal_(head.linear.weight)
    head.save(tmp_path / "head.safetensors")
    again = ByValueHead(str(tmp_path / "head.safetensors")).head
    assert isinstance(again, ValueHead)
    assert torch.equal(again.linear.weight, head.linear.weight)
    with pytest.raises(UsageError, match="no such file"):
        ByValueHead(str(tmp_path / "other"))


@pytest.mark.parametrize(
    "spec",
    ["surprisal(verifier=number)", "S043(verifier=number)", "best_of_n(scorer=verifier, scorer.verifier=number)"],
)
def test_a_verifier_may_be_named(spec: str) -> None:
    """On a bandit whose second arm is called 1: where 1 is the reference, that arm is the answer if it was sampled."""
    strategy = make_strategy(spec, sampling=Sampling(1))
    task = Task("t", "", reference="1")
    [answer] = strategy([task], ENGINE, 12, np.random.default_rng(0))
    assert {e.text for e in answer.episodes} == {"0", "1"} and answer.text == "1"


def test_a_verifier_that_there_is_not_and_a_paper_that_trains_are_said_so() -> None:
    for spec, words in (
        ("surprisal(verifier=numbr)", "no verify part is called 'numbr'; did you mean 'number'"),
        ("test_time_training(verifier='no/such.py:f')", "no/such.py"),
        ("S091", "its strategy is semantic_branching"),
        ("S163", "is no strategy at test time; its seams: select, objective"),
        ("S081", "trains, and is no strategy at test time; see assay papers show S081"),
    ):
        with pytest.raises(UsageError, match=words):
            make_strategy(spec)
