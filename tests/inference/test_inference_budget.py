"""One budget in tokens: what is sampled and what it costs to score it stay within it together, whoever scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.engines.base import Request, Sampling
from assay.engines.keywords import Keywords
from assay.inference.base import Answer, Budget
from assay.inference.named import make_strategy
from assay.inference.scoring.base import Score
from assay.inference.scoring.flex import Flex
from assay.inference.scoring.judge import Judge
from assay.inference.scoring.scorers import BySteps
from assay.inference.supervision.completing import Completer, Search, Wanted
from assay.inference.supervision.prefixes import PrefixTree
from assay.lab.settings.reasoning._words import Words
from assay.papers.process.s202_is_prm_necessary import TrueProbability
from assay.types import Episode, Task, Verdict

LENGTH = 12
TASKS = [Task(str(i), "What is one plus one ?") for i in range(3)]


class Talker(Words):
    """An engine that uses all the words it is given, and ends a response now and then before that.

    Asked about a solution it says that it is wrong, in the box that a judge looks for.
    """

    def __init__(self, short: bool = True):
        super().__init__()
        self.short = short

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[self._one(r, np.random.default_rng([r.seed, j])) for j in range(r.n)] for r in requests]

    def _one(self, r: Request, rng: np.random.Generator) -> Episode:
        most = r.sampling.max_tokens
        n = int(rng.integers(1, most + 1)) if self.short else most
        first = r"\boxed{False}" if "solution" in str(r.prompt) else f"w{rng.integers(50)}"
        words = [first, *(f"w{rng.integers(50)}" for _ in range(n - 1))]
        tokens = np.concatenate([self.encode(" " + w) for w in words])[:n]
        none = np.full(len(tokens), -1.0, dtype=np.float32)
        stop: Any = "eos" if n < most else "length"
        prompt = np.concatenate([self.encode(str(r.prompt)), np.array(r.prefix, dtype=np.int64)])
        return Episode(prompt, tokens, np.ones(n, dtype=bool), none, self.decode(tokens), stop)


@dataclass(frozen=True)
class Priced:
    """A scorer that costs ``least`` to ``most_`` tokens and says so."""

    least: int
    most_: int

    def score(self, pairs: Any, engine: Any, rng: np.random.Generator) -> list[Score]:
        costs = rng.integers(self.least, self.most_ + 1, len(pairs)).tolist()
        return [Score(len(e.text) % 7 / 7, c) for c, (_, e) in zip(costs, pairs, strict=True)]

    def most(self, task: Task, response: Episode | int, engine: Any) -> int:
        return self.most_


def shares(task: Task, steps: Sequence[str]) -> list[float]:
    return [0.5 for _ in steps]


SCORERS: dict[str, Any] = {
    "dear": Priced(100, 100),
    "cheaper than feared": Priced(1, 60),
    "judge": Judge(None, 2, sampling=Sampling(5)),
    "another judge": Judge(Talker(), 1, "{response} {response} solution", Sampling(3)),
    "flex": Flex(None, 2, 0.75, quick=Sampling(3), slow=Sampling(9)),
    "steps": BySteps(shares),
}
STRATEGIES: dict[str, dict[str, Any]] = {
    "best_of_n": {},
    "weighted_majority": {},
    "S202": {},
    "beam": {"step": 4, "stop": (), "branch": 2},
    "mcts": {"step": 4, "stop": (), "value": "state", "branch": 2},
    "mcts by rollouts": {"step": 4, "stop": (), "branch": 2},
    "refine": {},
    "solve_detect_verify": {"rounds": 2},
}


def answers(name: str, scorer: Any, budget: Any, engine: Any = None, **options: Any) -> list[Answer]:
    table = {"name": name.split()[0], "scorer": scorer, **STRATEGIES.get(name, {}), **options}
    strategy = make_strategy(table, sampling=Sampling(LENGTH))
    return strategy(TASKS, engine or Talker(), budget, np.random.default_rng(1))


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize("name", STRATEGIES)
@given(tokens=st.integers(1, 1500), samples=st.none() | st.integers(1, 9))
@settings(max_examples=10, deadline=None)
def test_samples_and_opinions_together_cost_no_more_than_the_budget(
    name: str, scorer: str, tokens: int, samples: int | None
) -> None:
    """With too little for an opinion there is an answer all the same, and what has none is counted."""
    for answer in answers(name, SCORERS[scorer], Budget(samples, tokens)):
        assert 1 <= answer.tokens <= tokens
        assert answer.text
        assert answer.scoring <= answer.tokens
        if name in ("best_of_n", "weighted_majority", "S202"):
            assert answer.tokens - answer.scoring == sum(len(e.tokens) for e in answer.episodes)
            told = [s for s in answer.meta["scores"] if s is not None]
            assert answer.meta["unscored"] == len(answer.episodes) - len(told)


@pytest.mark.parametrize("tokens", [5, 12, 111, 112, 300, 1000, 3000])
def test_a_budget_buys_as_many_scored_responses_as_it_pays_for(tokens: int) -> None:
    """Responses of 12 tokens and opinions of 100: budget // 112 of them; the first is there whatever it costs."""
    for name in ("best_of_n", "weighted_majority", "S202"):
        for answer in answers(name, Priced(100, 100), Budget(tokens=tokens), Talker(short=False)):
            n = tokens // 112
            assert len(answer.episodes) == max(1, n)
            assert answer.tokens == (n * 112 if n else min(tokens, LENGTH))
            assert (answer.scoring, answer.meta["unscored"]) == (100 * n, 0 if n else 1)


@pytest.mark.parametrize("name", ["beam", "mcts", "mcts by rollouts"])
@pytest.mark.parametrize("tokens", [4, 12, 30, 99])
def test_a_search_that_cannot_pay_for_an_opinion_still_finishes_a_response(name: str, tokens: int) -> None:
    for answer in answers(name, Priced(100, 100), Budget(tokens=tokens), Talker(short=False)):
        [whole] = [e for e in answer.episodes if e.text == answer.text]
        assert answer.tokens == min(tokens, LENGTH) == len(whole.tokens) and answer.scoring == 0


def test_what_opinions_leave_over_pays_for_more_responses() -> None:
    """Opinions that might cost 60 and cost 1: far more than 1000 // 72 responses, and not one of them unscored."""
    for answer in answers("best_of_n", Priced(1, 1), Budget(tokens=1000), Talker(short=False)):
        assert len(answer.episodes) == 1000 // 13

    @dataclass(frozen=True)
    class Feared(Priced):
        def most(self, task: Task, response: Episode | int, engine: Any) -> int:
            return 60

    for answer in answers("best_of_n", Feared(1, 1), Budget(tokens=1000), Talker(short=False)):
        # The last one begun had 72 tokens before it.
        assert 1000 - 72 < answer.tokens <= 1000 - 59 and answer.meta["unscored"] == 0


def test_responses_do_not_depend_on_who_scores_them() -> None:
    """Under one generator two strategies choose among the same responses, as far as each gets."""
    few, many = (
        answers("best_of_n", scorer, Budget(tokens=900), Talker()) for scorer in (Judge(None, 1), Priced(1, 1))
    )
    for a, b in zip(few, many, strict=True):
        assert [e.text for e in a.episodes[:1]] == [e.text for e in b.episodes[:1]]
    again = answers("best_of_n", Judge(None, 1), Budget(tokens=900), Talker())
    assert [(a.text, a.tokens) for a in few] == [(a.text, a.tokens) for a in again]


@pytest.mark.parametrize("name", ["judge", "another judge", "flex", "steps"])
def test_no_opinion_costs_more_than_it_says_at_most(name: str) -> None:
    engine, scorer = Talker(), SCORERS[name]
    [many] = engine.generate([Request(TASKS[0].prompt, 40, Sampling(LENGTH), 3)])
    found = scorer.score([(TASKS[0], e) for e in many], engine, np.random.default_rng(0))
    for episode, score in zip(many, found, strict=True):
        assert 0 < score.tokens <= scorer.most(TASKS[0], episode, engine) <= scorer.most(TASKS[0], 3 * LENGTH, engine)


def test_a_tokenizer_of_characters_counts_characters() -> None:
    """A prompt of 200 letters is 200 tokens to a model that reads letters, whatever the length of its words."""

    class Letters(Talker):
        def encode(self, text: str) -> np.ndarray:
            return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int64)

        def decode(self, tokens: Any) -> str:
            return bytes(int(t) for t in tokens).decode()

    engine, task = Letters(), TASKS[0]
    for scorer, said in ((Judge(None, 2, sampling=Sampling(5)), 10), (TrueProbability(), len("TrueFalse"))):
        shown = scorer.template.replace("{{", "{").replace("}}", "}").replace("{question}", task.question)
        whole = shown.replace("{response}", "abc")
        episode = Episode(engine.encode("q"), engine.encode("abc"), np.ones(3, dtype=bool), None, "abc", "eos")
        assert scorer.most(task, episode, engine) == len(whole) + said == scorer.most(task, 3, engine)


def test_a_vote_of_last_tokens_pays_for_its_verdicts() -> None:
    """A verdict is one token: 7 tokens a response, and none left for the verdict on a first that has used up all."""
    from assay.engines.hf import HFEngine
    from assay.policies.causal_lm import CausalLM
    from assay.policies.loading import ModelConfig

    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 64, "alphabet": "0123456789+=\n"}
    policy = CausalLM.load(ModelConfig.model_validate({"source": "nano", "nano": nano}), 0)
    strategy = make_strategy({"name": "last_token_vote", "token": 5, "reference": -1.0}, sampling=Sampling(6))
    for tokens in (4, 6, 15):
        for answer in strategy([Task("t", "1+1=")], HFEngine(policy), Budget(tokens=tokens), np.random.default_rng(0)):
            assert 1 <= answer.tokens <= tokens and len(answer.episodes) == max(1, tokens // 7)


@pytest.mark.parametrize("name", ["beam", "mcts"])
def test_where_a_step_ends_is_asked_in_the_order_given(name: str) -> None:
    """Of sets of texts it would be another in every process, and a cache would not know the request again."""

    class Asked(Talker):
        def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
            stops.update(r.sampling.stop for r in requests)
            return super().generate(requests)

    stops: set[tuple[str, ...]] = set()
    own, step = tuple("abcdefgh"), tuple("hijklmno")
    strategy = make_strategy({"name": name, "step": 4, "stop": step}, sampling=Sampling(LENGTH, stop=own))
    strategy(TASKS, Asked(), 2, np.random.default_rng(0))
    assert tuple("abcdefghijklmno") in stops and stops <= {own, tuple("abcdefghijklmno")}


class Script(Keywords):
    """Says the same text, letter by letter, from wherever it is to go on, and asks a question of its own after it."""

    TEXT = "1\nQ: 2\n3"

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        return [[self._said(r)] * r.n for r in requests]

    def _said(self, r: Request) -> Episode:
        left = self.TEXT[len(r.prefix) :][: r.sampling.max_tokens]
        ends = [k for k in range(1, len(left) + 1) if any(left[:k].endswith(s) for s in r.sampling.stop)]
        text = left[: ends[0]] if ends else left
        stop: Any = "stop" if ends else "eos" if len(r.prefix) + len(left) == len(self.TEXT) else "length"
        prompt = np.concatenate([self.encode(r.prompt), np.array(r.prefix, dtype=np.int64)])
        return Episode(prompt, self.encode(text), np.ones(len(text), dtype=bool), np.zeros(len(text)), text, stop)


@pytest.mark.parametrize(
    "how", [{"name": "beam"}, {"name": "mcts"}, {"name": "mcts", "value": "state"}, {"name": "beam", "step": 3}]
)
def test_a_stop_string_that_begins_in_one_step_ends_in_the_next(how: dict[str, Any]) -> None:
    strategy = make_strategy(how, sampling=Sampling(LENGTH, stop=("\nQ:",)))
    for answer in strategy(TASKS, Script([]), 3, np.random.default_rng(0)):
        assert answer.text == "1\nQ:" and all(e.text == answer.text for e in answer.episodes)


def test_completions_end_at_a_stop_string_that_began_before_them() -> None:
    asked = Completer(Script([]), lambda task, text: Verdict.right(), Sampling(LENGTH, stop=("\nQ:",)))

    def search(tree: PrefixTree) -> Search:
        [begun] = yield [Wanted(None, 1, whole=False)]
        found = yield [Wanted(begun[0].episode, 1), Wanted(begun[0].episode, 1, whole=False)]
        assert begun[0].episode.text == "1\n" and not begun[0].done
        assert all(one.episode.text == "1\nQ:" and one.done for [one] in found)

    assert len(list(asked.grow(TASKS[:1], search, 0))) == 1
