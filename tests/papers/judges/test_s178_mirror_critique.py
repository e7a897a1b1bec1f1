"""S178: the weighted vote of critiques, abstention and honesty, and the verifier's own training data."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay import catalogue
from assay.batch import Batch
from assay.catalogue.claim import claim_of
from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.evaluate.strategies.comparison import Outcome, Point
from assay.inference.base import Strategy
from assay.inference.election import elect, totals
from assay.inference.scoring.base import Score
from assay.inference.scoring.judge import Judge
from assay.inference.voting.majority import Majority
from assay.inference.voting.weighted_majority import WeightedMajority
from assay.lab.settings.reasoning._words import Words
from assay.method import make_method
from assay.registry import build
from assay.rewards.outcome.vote import Ballot
from assay.tasks.solutions.critique_data import critique_tasks, critiques_with_hint
from assay.tasks.solutions.critiques import Critiques
from assay.types import Ask, Episode, Group, Task, Verdict

RNG = np.random.default_rng(0)
RECIPE = Path(__file__).parents[3] / "assay/recipes/mirror_critique.toml"
BOXED = Ballot(("boxed",), "none", "verifier")


class Given(Words):
    """An engine that gives the same responses to every prompt, or the next ones of a list."""

    def __init__(self, *texts: str):
        super().__init__()
        self.texts, self.asked = texts, []  # type: tuple[Any, list[Request]]

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        return [[self.episode(r, [self.texts[j % len(self.texts)]]) for j in range(r.n)] for r in requests]


class Fixed:
    """A scorer that looks values up."""

    def __init__(self, values: dict[str, float | None]):
        self.values = values

    def score(self, pairs: Any, engine: Any, rng: Any) -> list[Score]:
        return [Score(self.values[e.text], 1) for _, e in pairs]

    def most(self, task: Task, length: int) -> int:
        return 1


def test_a_small_cluster_of_convincing_solutions_wins() -> None:
    clusters = [0] * 9 + [1] * 5 + [2] * 2
    weights = [0.1] * 9 + [0.6] * 5 + [0.9] * 2
    found = totals(clusters, weights, 0.15)
    assert found == pytest.approx({0: 2.25, 1: 3.75, 2: 2.10})
    assert elect(found, "first", RNG) == 1
    assert elect(totals(clusters, [1.0] * 16), "first", RNG) == 0
    # All alike: the majority.
    assert elect(totals(clusters, [0.4] * 16, 0.15), "first", RNG) == 0


TEXTS = [rf"\boxed{{{a}}}" for a in "1112"]


def test_the_strategy_weighs_abstains_and_leaves_out_what_has_no_answer_or_no_critique() -> None:
    values: dict[str, float | None] = {TEXTS[0]: 0.2, TEXTS[3]: 0.95}

    def run(values: dict[str, float | None], *texts: str, **options: Any) -> Any:
        strategy = WeightedMajority(Fixed(values), Sampling(9), BOXED, bonus=0.15, **options)
        [answer] = strategy([Task("t", "q")], Given(*texts), len(texts), RNG)
        return answer

    # 3 (.2 + .15) = 1.05 against .95 + .15 = 1.10.
    assert run(values, *TEXTS).text == TEXTS[3]
    assert run({**values, TEXTS[3]: 0.8}, *TEXTS).text == TEXTS[0]
    assert run({**values, TEXTS[3]: 0.8}, *TEXTS, least=0.3).abstains
    assert not run(values, *TEXTS, least=0.3).abstains
    # No box, no vote; no readable critique, no vote.
    assert run({**values, "nothing": 1.0}, *TEXTS, "nothing").text == TEXTS[3]
    assert run({TEXTS[0]: None, TEXTS[3]: 0.1}, *TEXTS).text == TEXTS[3]
    # Nothing could be judged: the majority, and the failure is counted.
    nothing = run({TEXTS[0]: None, TEXTS[3]: None}, *TEXTS)
    assert nothing.text == TEXTS[0] and nothing.meta["unscored"] == 4
    assert nothing.scoring == 4
    # Neither answers nor critiques: the first response. A mean at the threshold is enough.
    assert run({"x": None, "y": None}, "x", "y").text == "x"
    assert run({TEXTS[0]: None, TEXTS[3]: None}, TEXTS[3], *TEXTS[:2]).text == TEXTS[0]
    assert not run({TEXTS[0]: 0.25}, TEXTS[0], least=0.25).abstains
    # Of the winner's responses the one that convinces most is given; one without a critique does not.
    ways = [rf"{way} \boxed{{1}}" for way in ("a", "b", "c")]
    assert run(dict(zip(ways, (None, 0.2, 0.9), strict=True)), *ways).text == ways[2]
    assert WeightedMajority().bonus == 0 and WeightedMajority().least is None


def test_equivalent_answers_are_counted_together() -> None:
    """Three ways to write a half: 3 (.5 + .15) = 1.95 against 2 (.7 + .15) = 1.70, which beats each of them alone."""
    halves = [rf"\boxed{{{a}}}" for a in (r"\frac{1}{2}", "0.5", r"\dfrac12")]
    texts = [*halves, r"\boxed{3}", r"\boxed{3}"]
    values: dict[str, float | None] = dict.fromkeys(halves, 0.5) | {r"\boxed{3}": 0.7}
    ballot = catalogue.find("S178").factory().ballot  # type: ignore[misc]
    for shown, wins in ((ballot, halves[0]), (Ballot(("boxed",), "none"), r"\boxed{3}")):
        strategy = WeightedMajority(Fixed(values), Sampling(9), shown, bonus=0.15)
        [answer] = strategy([Task("t", "q", kind="math")], Given(*texts), len(texts), RNG)
        assert answer.text == wins


def test_ties_are_drawn_by_lot() -> None:
    drawn = [elect({0: 1.0, 1: 1.0, 2: 0.5}, "random", np.random.default_rng(i)) for i in range(400)]
    assert set(drawn) == {0, 1}
    assert abs(np.mean(drawn) - 0.5) < 0.1
    assert elect({3: 1.0, 1: 1.0}, "first", RNG) == 1


def test_honesty_is_right_minus_wrong() -> None:
    rows = [Outcome(str(i), True, False, 1) for i in range(55)]
    rows += [Outcome(str(i), False, False, 1) for i in range(55, 75)]
    rows += [Outcome(str(i), None, True, 1) for i in range(75, 100)]
    assert Point("s", "1", tuple(rows)).summary()["honesty"]["value"] == pytest.approx(0.35)


def test_critiques_that_err_at_known_rates_beat_the_majority() -> None:
    """Of tasks with P(correct) ~ Beta(1, 1.5), by how many different wrong answers there are.

    Right by majority, right by weight, and honesty of the weighted answer without abstention and with it where the mean
    score of the answer is below .3: from 4,000 other tasks, with an error of .008. On the same draws the votes are
    counted apart from this code too.
    """
    known = {1: (0.358, 0.552, 0.104, 0.523), 2: (0.479, 0.665, 0.329, 0.623), 3: (0.551, 0.727, 0.454, 0.680)}
    n, k, critiques = 1200, 16, 16
    for wrong, expected in known.items():
        rng = np.random.default_rng(wrong)
        solver_right = rng.random((n, k)) < rng.beta(1, 1.5, (n, 1))
        answers = np.where(solver_right, 0, rng.integers(1, wrong + 1, (n, k)))
        v = rng.binomial(critiques, np.where(solver_right, 0.7, 0.25)) / critiques
        found = np.zeros((n, 4))
        for i, (row, scores) in enumerate(zip(answers.tolist(), v.tolist(), strict=True)):
            chosen = elect(totals(row, scores, 0.15), "random", rng)
            sign = 1 if chosen == 0 else -1
            sure = np.mean([s for s, a in zip(scores, row, strict=True) if a == chosen]) >= 0.3
            found[i] = elect(totals(row, [1.0] * k), "random", rng) == 0, chosen == 0, sign, sign * sure
        assert found.mean(0) == pytest.approx(expected, abs=0.055)
        votes = np.stack([(answers == a).sum(1) for a in range(wrong + 1)], 1)
        top = votes == votes.max(1, keepdims=True)
        ties = top.sum(1) > 1
        assert (found[~ties, 0] == top[~ties, 0]).all()
        shared = (top[:, 0] / top.sum(1))[ties]
        assert found[ties, 0].mean() == pytest.approx(shared.mean(), abs=4 * 0.5 / max(ties.sum(), 1) ** 0.5)


def group(name: str, texts: Sequence[str], right: Sequence[bool | None]) -> Group:
    none = np.zeros(0, dtype=np.int64)
    episodes = tuple(Episode(none, none, none.astype(bool), None, t, "eos") for t in texts)
    verdicts = tuple(Verdict(float(bool(p)), p) for p in right)
    return Group(Ask(Task(name, f"question {name}", "7"), len(texts)), episodes, verdicts)


def test_the_verifier_learns_from_one_right_and_the_different_wrong_solutions_of_open_questions() -> None:
    seven, eight, nine = (rf"so \boxed{{{a}}}" for a in (7, 8, 9))
    groups = [
        group("mixed", [seven, seven, eight, eight, nine, "?"], [True, True, False, False, False, None]),
        group("easy", [seven, seven], [True, True]),
        group("hopeless", [eight, nine], [False, False]),
        group("other", [seven, eight], [True, False]),
    ]
    tasks = critique_tasks(groups, np.random.default_rng(0))
    assert {t.id.partition("/")[0] for t in tasks} == {"mixed", "other"}
    assert sorted(t.reference for t in tasks) == ["False", "False", "True", "True"]
    assert len({t.id for t in tasks}) == 4
    for t in tasks:
        # What the verifier sees is question and solution; the reference answer is not among it.
        assert t.meta["question"] in t.prompt and t.meta["response"] in t.prompt
        assert (seven in t.prompt) == (t.reference == "True")
    only = critique_tasks(groups, np.random.default_rng(0), most=0.45)
    assert {t.id.partition("/")[0] for t in only} == {"mixed"}
    assert critique_tasks(groups[1:3], RNG) == []


def test_a_critique_is_kept_if_its_verdict_is_the_label_and_it_does_not_speak_of_the_hint() -> None:
    groups = [group("a", [r"\boxed{7}", r"\boxed{8}"], [True, False])]
    tasks = critique_tasks(groups, np.random.default_rng(0))
    critic = Given(r"as the reference answer says \boxed{True}", r"it adds up \boxed{True}", r"it does \boxed{True}")
    found = critiques_with_hint(tasks, critic, RNG, tries=3)
    assert [t.solution for t in found] == [r"it adds up \boxed{True}"]
    assert found[0].reference == "True"
    # The critic is told the answer; the verifier's own prompt is not changed.
    assert all("must not mention: 7" in r.prompt for r in critic.asked)
    assert "must not mention" not in found[0].prompt


def test_the_critic_sees_the_worked_solution_and_the_verifier_does_not() -> None:
    """It stands in the critic's prompt, before the proposed one; a critique that speaks of it is not taken."""
    one = group("a", [r"\boxed{7}", r"\boxed{8}"], [True, False])
    solved = replace(one, ask=replace(one.ask, task=replace(one.task, solution="3 and {4} are 7.")))
    tasks = critique_tasks([solved], np.random.default_rng(0))
    assert [t.meta["worked"] for t in tasks] == ["3 and {4} are 7."] * 2 and not any("are 7" in t.prompt for t in tasks)
    says = [r"unlike the Ground Truth \boxed{True}", r"not as the official solution \boxed{True}", r"so \boxed{True}"]
    critic = Given(*says)
    assert [t.solution for t in critiques_with_hint(tasks, critic, RNG, tries=3)] == [says[2]]
    for asked in critic.asked:
        hint, _, proposed = str(asked.prompt).partition("Proposed solution:")
        assert "must not mention: 7\n" in hint and "must not mention either:\n3 and {4} are 7.\n" in hint
        assert "are 7" not in proposed and r"\boxed{" in proposed
    bare = critique_tasks([one], np.random.default_rng(0))
    critiques_with_hint(bare, critic, RNG)
    assert "worked" not in bare[0].meta and "either" not in str(critic.asked[-1].prompt)


def test_the_paper_names_the_strategy() -> None:
    made = catalogue.find("S178").factory(Sampling(5))  # type: ignore[misc]
    assert isinstance(made, Strategy) and isinstance(made, WeightedMajority)
    assert (made.bonus, made.least, made.ties) == (0.15, 0.3, "random")
    assert isinstance(made.scorer, Judge) and made.scorer.n == 16
    assert isinstance(Majority(), Strategy)
    assert made.sampling == Sampling(5) and made.ballot == BOXED
    assert (made.scorer.sampling.max_tokens, made.scorer.engine) == (3072, None)
    assert catalogue.find("S178").factory().sampling == Sampling()  # type: ignore[misc]
    # What the lab compares is the same vote.
    assert {arm.get("bonus") for name, arm in claim_of("S178").arms.items() if name != "majority"} == {0.15}


def test_the_verifier_earns_the_label_and_nothing_is_divided() -> None:
    """1[boxed verdict == label] of four critiques, and reward less mean: one of four right gives 3/4 and -1/4."""
    verify, sections = build("verify", "critique"), tomllib.loads(RECIPE.read_text(encoding="utf-8"))
    says = [r"so \boxed{True}", r"no \boxed{False}", r"\boxed{False} at first, then \boxed{No}", "I cannot say"]
    earned = {label: [verify(Task("t", "q", label), text).score for text in says] for label in ("True", "False")}
    assert earned == {"True": [1, 0, 0, 0], "False": [0, 1, 1, 0]}
    method = make_method("grpo", **sections["method"])
    groups = [Group(g.ask, g.episodes, tuple(verify(Task("t", "q", "True"), t) for t in says)) for g in [told(says)]]
    batch = Batch.from_groups(groups)
    method.value(batch)
    assert batch.advantages[:, 0].tolist() == pytest.approx([0.75, -0.25, -0.25, -0.25])
    assert sections["tasks"]["source"]["name"] == "critiques" and sections["rollout"]["group"] == 8
    assert method.objective.kl_weight == 0


def test_the_critic_can_be_a_model_that_the_run_loads(tmp_path: Path) -> None:
    """No server is asked: an untrained model writes critiques, none of which has a verdict, and that is said."""
    samples = tmp_path / "samples.jsonl"
    solved = [{"id": "q", "prompt": "1+1", "response": str(n), "correct": n == 2} for n in (2, 3)]
    samples.write_text("".join(json.dumps(row) + "\n" for row in solved))
    nano = {
        "hidden": 16,
        "layers": 1,
        "heads": 2,
        "context": 1024,
        "alphabet": "".join(map(chr, range(32, 127))) + "\n",
    }
    critic = {"name": "hf", "model": {"source": "nano", "nano": nano}}
    with pytest.raises(UsageError, match="none of one label, came to the right verdict"):
        Critiques(samples, critic=critic, tries=2, max_tokens=4, keep=tmp_path / "critiques.jsonl")


def told(texts: Sequence[str]) -> Group:
    token = np.zeros(1, dtype=np.int64)
    episodes = tuple(Episode(token, token, token == 0, token.astype(np.float32), t, "eos") for t in texts)
    return Group(Ask(Task("t", "q", "True"), len(texts)), episodes)
