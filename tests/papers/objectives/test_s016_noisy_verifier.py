"""Noise-corrected rewards: worked numbers, unbiasedness by enumeration, what normalisation undoes, records, appeals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.batch import Batch
from assay.catalogue import find, make
from assay.credit.grpo import GRPO
from assay.engines.base import Request
from assay.errors import UsageError
from assay.lab.settings import load
from assay.lab.settings.bandits.noisy_bandit import Erring, Setting
from assay.method import Method, make_method
from assay.policies.tabular import TabularPolicy, Tree
from assay.records.audit import Record, save
from assay.rewards.outcome.appeals import Appeals, reading
from assay.rewards.outcome.noise import NoiseCorrected, recorded_rates
from assay.statistics.rate import Rate
from assay.types import NOTE, Ask, Episode, Group, Prompt, Task, Verdict


def episode(text: str = "", token: int = 0) -> Episode:
    return Episode(np.zeros(0, np.int64), np.array([token]), np.ones(1, bool), np.zeros(1, np.float32), text, "eos")


def batch_of(passed: Sequence[bool | None], task: Task | None = None, parts: Sequence[dict[str, Any]] = ()) -> Batch:
    verdicts = [Verdict(float(bool(p)), p, parts[i] if parts else {}) for i, p in enumerate(passed)]
    group = Group(
        Ask(task or Task("t", "?"), len(passed)), tuple(episode(f"r{i}") for i in range(len(passed))), tuple(verdicts)
    )
    return Batch.from_groups([group], torch.float64)


def rewards(part: NoiseCorrected, passed: Sequence[bool | None]) -> list[float]:
    return part(batch_of(passed)).values.tolist()


def test_worked_numbers() -> None:
    backward = NoiseCorrected("backward", 0.1, 0.2)
    assert rewards(backward, [True, False]) == pytest.approx([1.285714, -0.142857], abs=1e-6)
    assert rewards(NoiseCorrected("forward", 0.1, 0.2), [True, False]) == pytest.approx([0.2, -0.8], abs=1e-12)


@given(st.floats(0, 0.45), st.floats(0, 0.45))
def test_conditional_means_are_the_truth_and_a_multiple_of_it(low: float, high: float) -> None:
    cases: list[tuple[Any, tuple[float, float]]] = [("backward", (0, 1)), ("forward", (-(1 - low - high), 0))]
    for correction, wanted in cases:
        yes, no = rewards(NoiseCorrected(correction, low, high), [True, False])
        assert low * yes + (1 - low) * no == pytest.approx(wanted[0], abs=1e-9)
        assert (1 - high) * yes + high * no == pytest.approx(wanted[1], abs=1e-9)


def test_without_noise_backward_is_the_verdict_and_forward_praises_nothing() -> None:
    assert rewards(NoiseCorrected("backward", 0, 0), [True, False]) == [1, 0]
    assert rewards(NoiseCorrected("forward", 0, 0), [True, False]) == [0, -1]


@pytest.mark.parametrize("correction", ["backward", "forward"])
def test_standardisation_undoes_the_correction_and_the_mean_alone_leaves_a_factor(correction: Any) -> None:
    passed = [True, False, False, True, False]
    part, plain = NoiseCorrected(correction, 0.1, 0.2), Method().reward
    exact = GRPO(epsilon=0.0)
    found = Method(reward=part, credit=exact).value(batch_of(passed)).advantages
    assert torch.allclose(found, Method(credit=exact).value(batch_of(passed)).advantages, atol=1e-12)
    centred = GRPO(normalise=False)
    ratio = Method(reward=part, credit=centred).value(batch_of(passed)).advantages
    ratio = ratio / Method(reward=plain, credit=centred).value(batch_of(passed)).advantages
    want = 1 / 0.7 if correction == "backward" else 1
    assert ratio.flatten().tolist() == pytest.approx([want] * 5, abs=1e-6)


SUCCESS, MISSED = (0.6, 0.4, 0.3), (0.5, 0.0, 0.2)


def expected_gradient(policy: TabularPolicy, method: Method, size: int) -> torch.Tensor:
    """The exact expectation of the estimate from a group: over what is drawn, and what the verifier says of it."""
    p = policy.leaf_logprobs().exp().detach()
    score = torch.eye(len(p), dtype=torch.float64) - p
    total = torch.zeros_like(p)
    for arms in itertools.product(range(len(p)), repeat=size):
        for said in itertools.product([True, False], repeat=size):
            chance = 1.0
            for arm, yes in zip(arms, said, strict=True):
                accepted = SUCCESS[arm] * (1 - MISSED[arm])
                chance *= float(p[arm]) * (accepted if yes else 1 - accepted)
            batch = method.value(
                batch_of(said, parts=[{f"arm {a}": float(y)} for a, y in zip(arms, said, strict=True)])
            )
            total += chance * (batch.advantages[:, :1] * score[list(arms)]).mean(0)
    return total


def test_rates_of_the_check_that_decided_make_the_gradient_right_where_the_raw_verdict_prefers_the_wrong_arm() -> None:
    policy = TabularPolicy.random(Tree.bandit(3), 3)
    true = policy.exact_gradient(torch.tensor(SUCCESS, dtype=torch.float64))[0]
    by = {f"arm {i}": (0.0, miss) for i, miss in enumerate(MISSED)}
    backward = make("S016", correction="backward", by=by)
    assert torch.allclose(expected_gradient(policy, backward, 2), true, atol=1e-12)
    raw = expected_gradient(policy, make("S016", correction="backward", false_positive=0.0, false_negative=0.0), 2)
    even = TabularPolicy(Tree.bandit(3))
    misled = expected_gradient(even, make("S016", correction="backward", false_positive=0, false_negative=0), 2)
    assert misled[1] > misled[0] and not torch.allclose(raw, true, atol=1e-3)
    assert expected_gradient(even, backward, 2).argmax() == 0


def test_forward_points_along_the_gradient_when_rates_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.MISSED", (0.2, 0.2, 0.2))
    policy = TabularPolicy.random(Tree.bandit(3), 5)
    true = policy.exact_gradient(torch.tensor(SUCCESS, dtype=torch.float64))[0]
    forward = make("S016", false_positive=0.0, false_negative=0.2)
    assert torch.allclose(expected_gradient(policy, forward, 1), 0.8 * true, atol=1e-12)


def test_which_rates_a_sample_has() -> None:
    part = NoiseCorrected("backward", 0.1, 0.1, by={"rule": (0.0, 0.4), "proof": (0.2, 0.0), "math": (0.0, 0.3)})
    verdict = Verdict(0.0, False, {"judge": None, "rule": 0.0})
    assert part.rates(Task("a", "?", kind="math"), verdict) == (0.0, 0.4)
    plain = Verdict.wrong()
    assert part.rates(Task("a", "?", kind="math", meta={"category": "proof"}), plain) == (0.2, 0.0)
    assert part.rates(Task("a", "?", kind="math"), plain) == (0.0, 0.3)
    undecided = Verdict(0.0, False, {"rule": None})
    assert part.rates(Task("a", "?", kind="other"), undecided) == (0.1, 0.1)


def record(path: Path, right: tuple[int, int], wrong: tuple[int, int], categories: dict[str, Any]) -> str:
    pair = Rate.of(*right), Rate.of(*wrong)
    data = {"name": "x", "hash": "0", "rows": 1, "right": 1, "wrong": 1}
    found = Record("exact", {}, "v", "p", data, {}, *pair, categories, None, "2026-01-01T00:00:00+00:00")
    return str(save(found, path))


def test_rates_of_an_audit(tmp_path: Path) -> None:
    categories = {"fraction": (Rate.of(16, 40), Rate.of(1, 50)), "few": (Rate.of(5, 5), Rate.of(0, 5))}
    file = record(tmp_path / "a.json", (20, 100), (10, 100), categories)
    part = make("S016", correction="backward", record=file).reward
    fraction = part.rates(Task("a", "?", meta={"category": "fraction"}), Verdict.wrong())
    assert fraction == pytest.approx((0.02, 0.4))
    assert part.rates(Task("a", "?", meta={"category": "few"}), Verdict.wrong()) == pytest.approx((0.1, 0.2))
    assert part.rates(Task("a", "?"), Verdict.wrong()) == pytest.approx((0.1, 0.2))
    bad = record(tmp_path / "b.json", (95, 100), (0, 100), {})
    assert make("S016", record=bad).reward.rates(Task("a", "?"), Verdict.wrong()) == pytest.approx((0, 0.49))


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    for low, high in ((0.5, 0.5), (-0.1, 0.2), (0.0, 1.0)):
        with pytest.raises(UsageError, match=r"at most 0\.95"):
            NoiseCorrected("forward", low, high)
    with pytest.raises(UsageError, match="fraction"):
        NoiseCorrected(by={"fraction": (0.9, 0.9)})
    with pytest.raises(UsageError, match="no responses of one label"):
        NoiseCorrected(record=record(tmp_path / "a.json", (0, 0), (1, 10), {}))
    with pytest.raises(UsageError, match="cannot read"):
        NoiseCorrected(record=str(tmp_path / "none.json"))
    with pytest.raises(UsageError, match="share"):
        Appeals(Judge({}), share=0.0)
    with pytest.raises(UsageError, match="engine"):
        Appeals(object())
    with pytest.raises(UsageError, match="response"):
        Appeals(Judge({}), template="Is it right?")


class Judge:
    """An engine that says what it is told to say of each response."""

    def __init__(self, replies: dict[str, str]):
        self.replies, self.asked = replies, list[str]()

    def encode(self, prompt: Prompt) -> np.ndarray:
        return np.zeros(0, np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.zeros(0, np.int64)

    def decode(self, tokens: Any) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            assert isinstance(request.prompt, str) and request.n == 1 and request.sampling.temperature == 0
            [name] = [name for name in self.replies if f"\n{name}\n" in request.prompt]
            self.asked.append(name)
            out.append([episode(self.replies[name])])
        return out


def test_appeals_estimate_the_rate_of_false_negatives() -> None:
    judge = Judge({"r1": "Yes.", "r2": "no", "r3": "I cannot tell", "r4": "No, wait: yes"})
    appeals = Appeals(judge, share=1.0, decay=0.5)
    part = NoiseCorrected("backward", 0.0, 0.3, appeals=appeals)
    batch = batch_of([True, False, False, False, False, None])
    found = part(batch)
    # Three were decided, two of them overturned: of four rejected 8/3 are right, beside one accepted.
    first = (8 / 3 + 1e-5) / (8 / 3 + 1 + 2e-5)
    assert appeals.rate("exact") == pytest.approx(first, rel=1e-9)
    assert found.terms["appealed"].tolist() == [0, 1, 1, 1, 1, 0]
    assert found.terms["overturned"].tolist() == [0, 1, 0, 0, 1, 0]
    assert found.terms["undecided"].tolist() == [0, 0, 0, 1, 0, 0]
    assert found.valid is not None and found.valid.tolist() == [True] * 5 + [False]
    # The estimate is bounded before it is used.
    assert found.values[0].item() == pytest.approx(1 / 0.51)
    # Rates are averaged over the steps, not counts: this one's is that of the prior.
    part(batch_of([True, True, True]))
    assert appeals.rate("exact") == pytest.approx(first / 2 + 1e-5 / (3 + 2e-5) / 2, rel=1e-9)


def test_each_rejected_response_is_heard_with_the_same_probability_which_the_count_is_divided_by() -> None:
    names = {f"r{i}": "yes" if i % 4 == 0 else "no" for i in range(1000)}
    appeals = Appeals(Judge(names), share=0.25)
    found = appeals.hear(batch_of([False] * 1000 + [True] * 200))
    heard, overturned = int(found["appealed"].sum()), int(found["overturned"].sum())
    # 250 expected of 1000, with a deviation of 14; a quarter of them right.
    assert abs(heard - 250) < 56 and heard != 250 and abs(overturned - heard / 4) < 28
    assert appeals.rate("exact") == pytest.approx(4 * overturned / (4 * overturned + 200), rel=1e-6)


def test_where_nothing_seems_right_the_rate_is_that_of_the_prior() -> None:
    appeals = Appeals(Judge({"r0": "no", "r1": "no"}), share=1.0)
    appeals.hear(batch_of([False, False]))
    assert appeals.rate("exact") == 0.5
    appeals.hear(batch_of([None, None]))
    assert appeals.rate("exact") == 0.5


def test_a_judge_that_decides_nothing_changes_no_estimate() -> None:
    appeals = Appeals(Judge({"r0": "hm", "r1": ""}), share=1.0)
    appeals.hear(batch_of([False, False, True]))
    assert appeals.rate("exact") is None
    part = NoiseCorrected("forward", 0.0, 0.3, appeals=appeals)
    assert part(batch_of([False, False, True])).values.tolist() == pytest.approx([-0.7, -0.7, 0.3])


def test_some_of_the_rejected_are_heard_and_the_draw_goes_on_after_a_resume() -> None:
    def fresh() -> NoiseCorrected:
        return NoiseCorrected(appeals=Appeals(Judge({f"r{i}": "yes" for i in range(10)}), share=0.3))

    one, two = fresh(), fresh()
    batch = batch_of([False] * 10)
    first = one(batch).terms["appealed"]
    assert 0 < int(first.sum()) < 10
    two.load_state_dict(one.state_dict())
    later = one(batch).terms["appealed"]
    assert torch.equal(later, two(batch).terms["appealed"]) and not torch.equal(later, first)
    assert one.state_dict() == two.state_dict()


def test_a_category_has_an_estimate_of_its_own() -> None:
    appeals = Appeals(Judge({"r0": "yes", "r1": "yes"}), share=1.0)
    appeals.hear(batch_of([False, True], Task("a", "?", meta={"category": "fraction"})))
    appeals.hear(batch_of([True, True], Task("b", "?", meta={"category": "integer"})))
    assert appeals.rate("fraction") == pytest.approx(0.5)
    assert appeals.rate("integer") == pytest.approx(0, abs=1e-5)


def test_readings() -> None:
    assert reading(episode("YES")) is True and reading(episode("yes? no")) is False
    assert reading(episode("yesterday")) is None and reading(episode("Yes, yes. Oh no, NO")) is False
    assert reading(episode("no, yes")) is True
    failed = Episode(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool), None, "yes", "error")
    assert reading(failed) is None


def test_braces_in_a_response_are_text() -> None:
    judge = Judge({"{question}": "yes"})
    group = Group(Ask(Task("a", "?"), 1), (episode("{question}"),), (Verdict.wrong(),))
    Appeals(judge, share=1.0).hear(Batch.from_groups([group]))
    assert judge.asked == ["{question}"]


def test_names_of_checks_before_those_of_categories_and_notes_are_none() -> None:
    part = NoiseCorrected("backward", 0.1, 0.1, by={"a": (0.0, 0.3), "b": (0.2, 0.0)})
    task = Task("t", "?", meta={"category": "b"})
    assert part.rates(task, Verdict(1.0, True, {"a": 1.0})) == (0.0, 0.3)
    assert part.rates(task, Verdict(1.0, True, {"a": None})) == (0.2, 0.0)
    assert part.rates(task, Verdict(1.0, True, {f"a{NOTE}x": 1.0})) == (0.2, 0.0)


def test_the_method_and_its_options() -> None:
    assert find("S016").seams == ("reward", "credit")
    forward, backward = make("S016"), make("S016", correction="backward")
    assert type(forward.credit).__name__ == "Reinforce" and type(backward.credit).__name__ == "RLOO"
    judged = make("S016", judge=Judge({}))
    assert judged.reward.false_positive == 0 and forward.reward.false_positive == 0.1
    again: Any = make_method(judged, reward={"false_negative": 0.4}).reward
    assert again.false_negative == 0.4 and again.appeals is judged.reward.appeals
    assert not math.isnan(make("S016", correction="forward").reward(batch_of([None])).values.item())


def test_the_defaults_of_the_method_and_of_its_parts() -> None:
    for reward in (NoiseCorrected(), make("S016").reward):
        assert (reward.correction, reward.false_positive, reward.false_negative) == ("forward", 0.1, 0.2)
        assert reward.least == 30
        assert rewards(reward, [True, False]) == pytest.approx([0.2, -0.8])
    for appeals in (Appeals(Judge({})), make("S016", judge=Judge({})).reward.appeals):
        assert (appeals.share, appeals.decay, appeals.max_tokens, appeals.tail, appeals.seed) == (0.1, 0.9, 16, 2000, 0)
    table = NoiseCorrected(appeals={"judge": Judge({}), "decay": 0.5})
    assert isinstance(table.appeals, Appeals) and table.appeals.decay == 0.5
    assert (
        NoiseCorrected().state_dict() == {}
        and make("S016", judge=Judge({}), false_positive=0.3).reward._overall[0] == 0.3
    )
    NoiseCorrected().load_state_dict({})


def test_the_edges_of_what_may_be_given(tmp_path: Path) -> None:
    assert rewards(NoiseCorrected("backward", 0.0, 0.95), [True, False]) == pytest.approx([20, 0])
    assert rewards(NoiseCorrected("backward", 0.95, 0.0), [True, False]) == pytest.approx([1, -19])
    for low, high in ((1.0, 0.0), (0.2, -0.1), (0.0, 0.96), (0.5, 0.46)):
        with pytest.raises(UsageError, match="at most"):
            NoiseCorrected("forward", low, high)
    edge = Appeals(Judge({}), share=1.0, decay=0.0, max_tokens=1, tail=1)
    assert (edge.share, edge.decay) == (1, 0)
    for bad in ({"share": 1.1}, {"decay": 1.0}, {"decay": -0.1}, {"max_tokens": 0}, {"tail": 0}):
        with pytest.raises(UsageError, match="appeals"):
            Appeals(Judge({}), **bad)
    with pytest.raises(UsageError, match="one label"):
        NoiseCorrected(record=record(tmp_path / "b.json", (1, 10), (0, 0), {}))


def test_how_many_decided_rows_make_a_category_count(tmp_path: Path) -> None:
    """30 of each by default: 29 have the overall rates, those of right and of wrong responses apart."""
    categories = {"right": (Rate.of(3, 30), Rate.of(29, 29)), "wrong": (Rate.of(29, 29), Rate.of(6, 30))}
    file = record(tmp_path / "a.json", (20, 100), (10, 100), categories)
    part = NoiseCorrected(record=file)
    of = lambda name, part=part: part.rates(Task("a", "?", meta={"category": name}), Verdict.wrong())  # noqa: E731
    assert of("right") == pytest.approx((0.1, 0.1)) and of("wrong") == pytest.approx((0.2, 0.2))
    few = NoiseCorrected(record=file, least=29)
    assert of("right", few) == pytest.approx((0.49, 0.1)) and of("wrong", few) == pytest.approx((0.2, 0.49))
    overall, named = recorded_rates(Path(file))
    assert overall == pytest.approx((0.1, 0.2)) and named == {name: of(name) for name in categories}
    none = record(tmp_path / "b.json", (20, 100), (10, 100), {"empty": (Rate.of(0, 0), Rate.of(1, 1))})
    assert of("empty", NoiseCorrected(record=none, least=0)) == pytest.approx((0.49, 0.2))


def test_what_an_appeal_shows_the_judge() -> None:
    """Question, reference and the response's last characters; a reply of at most so many tokens; a seed for each."""
    seen: list[Request] = []

    class Recorded(Judge):
        def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
            seen.extend(requests)
            return [[episode("no")] for _ in requests]

    group = Group(
        Ask(Task("a", "2+2?", reference=4), 2), (episode("abcdef"), episode("xyz")), (Verdict.wrong(), Verdict.wrong())
    )
    appeals = Appeals(Recorded({}), share=1.0, template="{question}|{reference}|{response}", tail=3, max_tokens=5)
    appeals.hear(Batch.from_groups([group]))
    assert [r.prompt for r in seen] == ["2+2?|4|def", "2+2?|4|xyz"]
    assert all((r.n, r.sampling.max_tokens, r.sampling.temperature) == (1, 5, 0.0) for r in seen)
    assert seen[0].seed != seen[1].seed and all(0 <= r.seed < 2**63 for r in seen)
    appeals.hear(Batch.from_groups([group]))
    assert seen[2].seed != seen[0].seed and min(r.seed for r in seen) > 2**40
    assert appeals.state_dict()["heard"] == 2


def test_no_accepted_response_is_heard_and_an_abstention_neither() -> None:
    appeals = Appeals(Judge({f"r{i}": "yes" for i in range(4)}), share=1.0, decay=0.0)
    assert appeals.hear(batch_of([False, True, None, False]))["appealed"].tolist() == [1, 0, 0, 1]
    assert appeals.rate("exact") == pytest.approx(2 / 3, abs=1e-5) and appeals.rate("nothing yet") is None


def test_what_a_recipe_may_say_and_what_is_memory() -> None:
    """What was heard is state: no option, not shown, and not compared."""
    judge = Judge({"r0": "yes"})
    used, fresh = Appeals(judge, share=1.0), Appeals(judge, share=1.0)
    used.hear(batch_of([False, True]))
    assert used == fresh and used.state_dict() != fresh.state_dict()
    for part in (used, NoiseCorrected(by={"a": (0.0, 0.1)})):
        assert "_" not in "".join(word.partition("=")[0][:1] for word in repr(part).replace("(", ", ").split(", "))
        assert not [f.name for f in fields(part) if f.init and f.name.startswith("_")]


def test_a_category_without_a_decision_is_passed_over_and_the_next_is_not() -> None:
    tasks = [Task("a", "?", meta={"category": name}) for name in ("open", "told")]
    groups = [
        Group(Ask(task, 2), (episode(f"r{2 * i}"), episode(f"r{2 * i + 1}")), (Verdict.wrong(), Verdict.right()))
        for i, task in enumerate(tasks)
    ]
    appeals = Appeals(Judge({"r0": "hm", "r2": "yes"}), share=1.0)
    appeals.hear(Batch.from_groups(groups))
    assert appeals.rate("open") is None and appeals.rate("told") == pytest.approx(0.5)


# The lab's setting


def test_the_verifier_of_the_bandit_errs_at_its_rates() -> None:
    setting = Setting(success=(0.6, 0.4), false_negative=(0.5, 0.0), false_positive=(0.1, 0.2))
    verifier = Erring(setting, np.random.default_rng(0))
    task = Task("bandit", "?")
    for arm, accepted in ((0, 0.6 * 0.5 + 0.4 * 0.1), (1, 0.4 + 0.6 * 0.2)):
        said = [verifier(task, str(arm)) for _ in range(4000)]
        assert np.mean([v.passed for v in said]) == pytest.approx(accepted, abs=0.03)
        assert all(v.parts == {f"arm {arm}": float(bool(v.passed))} for v in said)


def test_a_run_of_the_bandit_measures_what_is_true(tmp_path: Path) -> None:
    found = load("noisy_bandit", {"steps": 3, "lr": 0.0, "spread": 0.0}).run({"name": "grpo"}, 0, tmp_path)
    assert found["start"] == found["final"] == found["area"] == pytest.approx(0.5)
    assert found["best"] == pytest.approx(0.5) and found["rollouts"] == 3 * 4 * 8
    with pytest.raises(UsageError, match="each arm"):
        load("noisy_bandit", {"success": [0.1, 0.2, 0.3]})
