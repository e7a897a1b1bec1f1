"""IGPO: gains by hand, what is scored and where, by plain passes of a model; how rewards of turns become advantages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from running import metrics, run
from tiny import TOKENIZER, plain_logits, tiny
from turned import by_turn, turned

from assay.batch import Batch
from assay.learning.signals import compute_signals
from assay.method import make_method
from assay.papers.agents.s198_igpo import TokenReturns
from assay.policies.causal_lm import CausalLM
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.likelihood.information_gain import InformationGain
from assay.rewards.text.answer_f1 import AnswerF1, word_f1
from assay.signals.base import Models
from assay.signals.turns.likelihood import BRIDGE, CLOSE, TurnLikelihood, gains
from assay.types import Ask, Episode, Group, Task, Turn, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


def scored(likelihoods: Sequence[Sequence[float]], answers: Sequence[float], **options: Any) -> Batch:
    """Trajectories with p before each turn, and what their answers are worth, valued by the method."""
    batch = turned([[0.0] * len(row) for row in likelihoods], answers)
    width = max(map(len, likelihoods))
    batch.signals["turn_likelihood"] = torch.tensor(
        [[*np.log(row), *[np.nan] * (width - len(row))] for row in likelihoods], dtype=torch.float64
    )
    method = make_method("S198", options={"answer": "verdict", **options})
    return method.value(batch)


def near(got: list[list[float]], want: list[list[float]], digits: float = 1e-4) -> bool:
    return all(a == pytest.approx(b, abs=digits) for a, b in zip(got, want, strict=True))


CARD = [[0.10, 0.30, 0.25], [0.10, 0.12]]


def test_the_worked_example() -> None:
    batch = scored(CARD, [1.0, 0.0])
    assert batch.token_rewards is not None
    assert batch.token_rewards[0, [1, 4, 7]].tolist() == pytest.approx([0.2, -0.05, 0])
    assert batch.token_rewards[1, [1, 4]].tolist() == pytest.approx([0.02, 0]) and batch.rewards.tolist() == [1, 0]
    assert near(by_turn(batch.advantages, batch), [[1.0217, 1.0992, 1.7469], [-1.0217, -0.5336]])
    population = scored(CARD, [1.0, 0.0], ddof=0)
    assert near(by_turn(population.advantages, population), [[1.1423, 1.2289, 1.9531], [-1.1423, -0.5966]])
    half = scored(CARD, [1.0, 0.0], ddof=0, discount=0.5)
    first = -0.0867 - 0.7241 / 2 + 1.9531 / 4
    assert by_turn(half.advantages, half)[0][0] == pytest.approx(first, abs=1e-3)


def test_weights_and_logarithms() -> None:
    batch = scored(CARD, [1.0, 0.0], weight=0.5)
    assert batch.token_rewards is not None and batch.token_rewards[0, 1].item() == pytest.approx(0.1)
    logs = scored(CARD, [1.0, 0.0], logarithm=True)
    assert logs.token_rewards is not None and logs.token_rewards[0, 1].item() == pytest.approx(np.log(3))


def test_the_papers_numbers() -> None:
    """Gains weigh as much as answers do, a divergence of 0.001; alone, gains are of probabilities."""
    method = make_method("S198")
    assert method.reward.weights["gain"] == 1 and method.reward.inner["gain"] == InformationGain()  # type: ignore[attr-defined]
    assert method.objective.kl_weight == 1e-3 and not InformationGain().logarithm  # type: ignore[attr-defined]
    by_token = make_method("S198", options={"normalise": "token"})
    assert TokenReturns() == by_token.credit and by_token.group_relative, "it takes a group to compare"


def test_what_a_silent_turn_gained() -> None:
    """It is paid on the last token before it; where nothing was said, nobody is paid."""
    batch = scored([[0.1, 0.3, 0.25], [0.1, 0.3, 0.25]], [1.0, 0.0])
    batch.mask[0, 3:5] = False
    batch.mask[1, 0:2] = False
    tokens = InformationGain()(batch).tokens
    assert tokens is not None and tokens[0].nonzero()[:, 0].tolist() == [1]
    assert tokens[0, 1].item() == pytest.approx(0.2 - 0.05)
    assert tokens[1].nonzero()[:, 0].tolist() == [4] and tokens[1, 4].item() == pytest.approx(-0.05)


def test_gains_and_answers_apart() -> None:
    """Gains 0.2, -0.05 and 0.02 among themselves, answers 1 and 0 among themselves."""
    batch = scored(CARD, [1.0, 0.0], normalise="apart", ddof=0)
    g = (np.array([0.2, -0.05, 0.02]) - 0.17 / 3) / np.std([0.2, -0.05, 0.02])
    want = [[g[0] + g[1] + 1, g[1] + 1, 1], [g[2] - 1, -1]]
    assert near(by_turn(batch.advantages, batch), want)


def test_returns_by_token() -> None:
    """Returns 1.15, 0.95, 1 and 0.02, 0, compared at the same place of the response."""
    batch = scored(CARD, [1.0, 0.0], normalise="token")
    want = [[(1.15 - 0.02) / 2, 0.95 / 2, 0], [-(1.15 - 0.02) / 2, -0.95 / 2]]
    assert near(by_turn(batch.advantages, batch), want)
    batch.valid[1] = False
    assert not TokenReturns()(batch).any()
    assert TokenReturns()(Batch.from_groups([], torch.float64)).shape == (0, 0)


def test_a_group_without_a_right_answer_learns() -> None:
    """Gains 0.2; 0.1 in the second turn; -0.1; none. Four answers are wrong: GRPO has nothing to say."""
    rows = [[0.2, 0.4, 0.4], [0.2, 0.2, 0.3], [0.2, 0.1, 0.1], [0.2, 0.2, 0.2]]
    batch = scored(rows, [0.0] * 4, ddof=0, discount=0.0)
    assert float(batch.advantages.abs().max()) == pytest.approx(2.67, abs=0.01)
    summed = scored(rows, [0.0] * 4, ddof=0)
    assert summed.advantages[0, 0].item() == pytest.approx(2.668 - 2 * 0.2426, abs=1e-3)
    assert not make_method("grpo", reward="verdict").value(scored(rows, [0.0] * 4)).advantages.any()


@settings(max_examples=30)
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=5))
def test_gains_add_up(p) -> None:
    found = gains(torch.tensor([p], dtype=torch.float64).log(), [len(p)], False)
    assert found.sum().item() == pytest.approx(p[-1] - p[0]) and found[0, -1] == 0


def test_what_cannot_be_scored() -> None:
    nan = float("nan")
    log = torch.tensor([[0.1, 0.3, nan, 0.5], [0.1, nan, nan, nan], [nan] * 4], dtype=torch.float64).log()
    found = gains(log, [4, 1, 2], False)
    assert found[0].tolist() == pytest.approx([0.2, 0, 0, 0]) and not found[1:].any()
    # What stands behind the last turn of a response is none of its turns.
    known = torch.tensor([[0.1, 0.3, 0.5]], dtype=torch.float64).log()
    assert gains(known, [2], False)[0].tolist() == pytest.approx([0.2, 0, 0])
    # An answer that was impossible and is no more has gained what it is now; of logarithms nothing can be said.
    sure = torch.tensor([[0.0, 0.5]], dtype=torch.float64).log()
    assert gains(sure, [2], False).tolist() == [[0.5, 0]] and gains(sure, [2], True).tolist() == [[0, 0]]


def test_an_answers_words() -> None:
    assert word_f1("the Red, red kettle", "a red pot") == pytest.approx(1 / 3), "{the, red, kettle}, {a, red, pot}"
    assert word_f1("", "x") == 0 and word_f1("x", "X.") == 1
    assert word_f1("Jean-Luc's", "jean luc") == 0.8, "{jean, luc, s} and {jean, luc}"
    texts = [
        "<think>so</think><answer>blue pot</answer>",
        "<answer>x</answer> <answer>red</answer>",
        "no answer",
        "<think><answer>blue pot</answer>",
        "<answer>green",
    ]
    episodes = [Episode(np.zeros(0), np.zeros(1), np.ones(1, bool), None, t, "eos") for t in texts]
    verdicts = (Verdict.wrong(),) * len(texts)
    task = Task("t", "?", {"answers": ["Blue pot", "red"]})
    batch = Batch.from_groups([Group(Ask(task, len(texts)), tuple(episodes), verdicts)], torch.float64)
    assert AnswerF1()(batch).values.tolist() == [1, 1, -2, -2, -2]
    assert AnswerF1(0.0)(batch).values.tolist() == [1, 1, 0, 0, 0]
    # Of several turns the last one answers, whatever the world says after it.
    turns = (Turn(0, 0, 1, text="<answer>red</answer>"), Turn(1, 1, 1, text="<answer>blue</answer>"))
    batch.episodes = [replace(episodes[0], turns=turns), *episodes[1:]]
    assert AnswerF1()(batch).values[0].item() == pytest.approx(2 / 3)
    batch.tasks = [replace(task, reference=None)] * len(texts)
    assert AnswerF1()(batch).valid.tolist() == [False] * len(texts)


# What is scored


def conversation(reference: Any, turns: int = 3, prompt: str = "1+1=") -> Batch:
    """Turns of two letters, each answered by three digits."""
    text = "".join(f"ab12{k}" for k in range(turns - 1)) + "ab"
    tokens = np.array(TOKENIZER(text, add_special_tokens=False)["input_ids"])
    assert len(tokens) == len(text)
    mask = np.array([c in "ab" for c in text])
    made = tuple(Turn(k, 5 * k, 5 * k + 2, text="ab") for k in range(turns))
    asked = np.array(TOKENIZER(prompt, add_special_tokens=False)["input_ids"])
    episode = Episode(asked, tokens, mask, None, text, "eos", turns=made)
    group = Group(Ask(Task("t", prompt, reference), 1), (episode,), (Verdict.wrong(),))
    return Batch.from_groups([group], torch.float64)


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    model = CausalLM(tiny("llama", seed=4), TOKENIZER)
    model.module.double()
    return model


def by_a_plain_pass(batch: Batch, before: int, answer: str, around: tuple[str, str]) -> float:
    """Mean log-probability of the answer's characters, each of which is a token."""
    [episode] = batch.episodes
    ids = TOKENIZER(around[0] + answer + around[1], add_special_tokens=False)["input_ids"]
    tokens = np.concatenate([episode.tokens[:before], ids])
    logp = plain_logits(tiny("llama", seed=4).double(), episode.prompt, tokens).log_softmax(-1)
    here = range(before + len(around[0]), before + len(around[0]) + len(answer))
    return float(np.mean([logp[t, tokens[t]].item() for t in here]))


def test_what_is_scored_after_every_turn(policy: CausalLM) -> None:
    """Before each turn, with all that the world has said: at its tokens 0, 5 and 10."""
    batch = conversation("42")
    around = ("c=(", ")")
    found = TurnLikelihood(*around)(batch, Models(policy))
    want = [by_a_plain_pass(batch, before, "42", around) for before in (0, 5, 10)]
    assert found.shape == (1, 3) and found[0].tolist() == pytest.approx(want, abs=1e-5)
    assert not found.requires_grad and len(set(want)) == 3


def test_the_likelihood_of_an_answer(policy: CausalLM) -> None:
    """The geometric mean over tokens; of several accepted answers the first."""
    assert np.exp(np.mean(np.log([0.2, 0.5]))) == pytest.approx(0.3162, abs=1e-4)
    each = [TurnLikelihood("c=(", ")")(conversation(a), Models(policy)) for a in ("42", "7")]
    assert not torch.allclose(*each)
    for answers, first in ((["42", "7"], 0), ([" ", " 7 ", "42"], 1)):
        found = TurnLikelihood("c=(", ")")(conversation({"answers": answers}), Models(policy))
        assert torch.allclose(found, each[first])
    hot = TurnLikelihood("c=(", ")", temperature=2.0)(conversation("42"), Models(policy))
    assert not torch.allclose(hot, each[0])


class Pairs(TabularPolicy):
    """A policy that writes two characters as one token wherever they begin at an even place of the text."""

    asked: Any = None

    def __init__(self) -> None:
        super().__init__(Tree.bandit(2))

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        pieces = [text[i : i + 2] for i in range(0, len(text), 2)]
        return np.array([sum(ord(c) << 8 * k for k, c in enumerate(p)) for p in pieces])

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join("".join(chr(t >> s & 255) for s in (0, 8) if t >> s & 255) for t in map(int, tokens))

    def micro_batches(self, batch: Batch, budget: int) -> list[torch.Tensor]:
        return [torch.arange(len(batch))]

    def continuations(self, batch: Any, at: Any, what: Any, temperature: float = 1.0) -> torch.Tensor:
        self.asked = at, what
        width = max(len(w) for row in what for w in row)
        out = torch.zeros(len(what), max(map(len, what)), width, dtype=torch.float64)
        for i, row in enumerate(what):
            for k, tokens in enumerate(row):
                out[i, k, : len(tokens)] = -torch.arange(1.0, len(tokens) + 1)
        return out


def test_the_answers_tokens_are_found_in_the_whole() -> None:
    """ "a=42)" is a=, 42, ): the answer is the second token. "a42)" is a4, 2): both have a character of it."""
    batch, policy = conversation("42", turns=1), Pairs()
    models = Models(policy)
    assert TurnLikelihood("a=", ")")(batch, models).tolist() == [[-2.0]]
    assert TurnLikelihood("a", ")")(batch, models).tolist() == [[-1.5]]
    assert [policy.decode(w) for w in policy.asked[1][0]] == ["a42)"]


def test_nothing_to_score(policy: CausalLM) -> None:
    for reference in (None, "", {"answers": []}):
        assert TurnLikelihood("c=(", ")")(conversation(reference), Models(policy)).isnan().all()
    # What the tokenizer cannot write cannot be found again.
    assert TurnLikelihood("c=(", ")")(conversation("xyz"), Models(policy)).isnan().all()
    # And where the context ends, it ends.
    long = conversation("42", turns=30)
    found = TurnLikelihood("c=(", ")")(long, Models(policy))
    room = policy.context - len(long.episodes[0].prompt) - 6
    assert [not x for x in found[0].isnan().tolist()] == [5 * k <= room for k in range(30)] and room < 5 * 29
    exact = conversation("42", turns=30, prompt="1" * (1 + (policy.context - 7) % 5))
    room = policy.context - len(exact.episodes[0].prompt) - 6
    assert room % 5 == 0, "the answer fills the context to its last token"
    seen = TurnLikelihood("c=(", ")")(exact, Models(policy))[0].isfinite()
    assert seen.tolist() == [5 * k <= room for k in range(30)]
    reward = InformationGain(TurnLikelihood("c=(", ")"))
    compute_signals(long, {TurnLikelihood("c=(", ")")}, Models(policy))
    assert "turn_likelihood" in long.whole, "a column is a turn and no token"
    torch.testing.assert_close(long.signals["turn_likelihood"], found, equal_nan=True)
    assert bool(reward(long).tokens.isfinite().all())


class Counts(Pairs):
    """A policy that expects the characters it has read: (count + 1) / (read + 256), one token each."""

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.array([ord(c) for c in text])

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(chr(int(t)) for t in tokens)

    def continuations(self, batch: Any, at: Any, what: Any, temperature: float = 1.0) -> torch.Tensor:
        out = torch.zeros(len(what), max(map(len, what)), max(len(w) for r in what for w in r), dtype=torch.float64)
        for i, row in enumerate(what):
            for k, tokens in enumerate(row):
                read = [*batch.episodes[i].prompt, *batch.episodes[i].tokens[: at[i][k]]]
                for j, t in enumerate(tokens):
                    out[i, k, j] = np.log((read.count(t) + 1) / (len(read) + 256))
                    read.append(t)
        return out


def test_to_be_shown_the_answer_is_a_gain() -> None:
    """By a policy that expects what it has read: the answer shown is a gain, nothing shown about none."""
    policy = Counts()
    gained = []
    for shown in ("zebra", "", "qqqqq"):
        text = f"go{shown}go"
        tokens = policy.encode_response(text)
        turns = (Turn(0, 0, 2), Turn(1, 2 + len(shown), 4 + len(shown)))
        mask = np.array([True] * 2 + [False] * len(shown) + [True] * 2)
        episode = Episode(tokens[:0], tokens, mask, None, text, "eos", turns=turns)
        group = Group(Ask(Task("t", "", "zebra"), 1), (episode,), (Verdict.wrong(),))
        batch = Batch.from_groups([group], torch.float64)
        signal = TurnLikelihood()
        batch.signals["turn_likelihood"] = signal(batch, Models(policy))
        [[first, last]] = by_turn_rewards(InformationGain(signal)(batch).tokens, batch)
        assert last == 0
        gained.append(first)
    assert gained[0] > 0.001 and abs(gained[1]) < 1e-4 and gained[2] < gained[0] / 10
    assert (BRIDGE, CLOSE) == ("<think>\nNow there's enough information to answer\n</think>\n<answer>\n", "\n</answer>")


def by_turn_rewards(tokens: torch.Tensor, batch: Batch) -> list[list[float]]:
    return [[row[t.end - 1].item() for t in e.turns] for row, e in zip(tokens, batch.episodes, strict=True)]


def test_it_trains_by_searching(tmp_path: Path) -> None:
    world = {"name": "search", "documents": 10, "shown": 1, "chars": 40, "hops": 1, "protocol": "tags"}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 768}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_share": 0.2},
        warmup={"steps": 0},
        method={"name": "S198", "reward": None, "rollout": {"name": "multi_turn", "environment": world, "turns": 3}},
        rollout={"prompts": 2, "group": 4, "max_tokens": 4, "max_rows": 64},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert len(rows) == 2 and all(m["score"] == 0 for m in rows if "score" in m)
    # Nobody has answered, and still there is something to learn.
    assert all(m["grad_norm"] > 0 for m in rows)
