"""S030: who is asked, whose verdict counts, what the static study and the probing set say, and hacking in numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import assay
from assay.audit.outcome import Outcome
from assay.audit.robustness import resistance
from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.lab.settings.judges.hacked_judges import Setting
from assay.lab.settings.reasoning._words import Words
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.papers.judges.s030_verifier_pitfalls import (
    PATTERNS,
    EquivalenceJudge,
    Graded,
    hacked_at,
    probing_set,
    static_table,
)
from assay.registry import build
from assay.rewards.judges.hybrid_judge import HybridJudge
from assay.types import Task, Verdict
from assay.verify.hybrid import Hybrid, either, extracted, plain_number

HERE = f"{Path(__file__)}:lenient"


class Model:
    """A verifier that accepts what it is told to, and notes what it is asked."""

    def __init__(self, *accepts: str, fails: str = "-"):
        self.accepts, self.fails, self.asked = accepts, fails, list[tuple[Any, str]]()

    def __call__(self, task: Task, response: str) -> Verdict:
        self.asked.append((task.reference, response))
        return (
            Verdict.abstain("cannot tell")
            if response == self.fails
            else Verdict(float(ok := response in self.accepts), ok)
        )


def lenient(task: Task, response: str) -> Verdict:
    return Verdict.right() if response.isdigit() else Verdict.wrong()


def task(reference: Any, kind: str = "math") -> Task:
    return Task("t", "What is it?", reference, kind)


@pytest.mark.parametrize(
    ("gold", "answer", "passed", "asked"),
    [
        ("0.5", r"\boxed{\frac{1}{2}}", True, False),  # the rule says so
        ("3", r"\boxed{4}", False, False),  # two numbers are final
        ("x^2", "", False, False),  # nothing was extracted
        ("x^2", "I think it is a parabola", False, False),
        (r"\text{even}", "<answer>{</answer>", True, True),  # an attack that the model falls for
        (r"\text{even}", "<answer>odd</answer>", False, True),
        ("3", "<answer>{</answer>", True, True),
        ("x", r"\boxed{4}", False, True),
        (["3", "x"], r"\boxed{4}", False, True),  # one of the references is no number
        ("y", "<answer>?</answer>", None, True),  # no or unknown is unknown
    ],
)
def test_who_is_asked(gold: Any, answer: str, passed: bool | None, asked: bool) -> None:
    model = Model("{", fails="?")
    rule = "math" if gold == "0.5" else {"name": "exact", "fallback": "none"}
    said = Hybrid(rule, model)(task(gold), answer)
    assert said.passed is passed and bool(model.asked) is asked
    # Reference and extracted answer are all that it sees.
    assert all(reference == gold and "boxed" not in r and "<" not in r for reference, r in model.asked)
    assert (said.parts["model"] is None) == (not asked or passed is None) and said.score == float(passed is True)
    shown = Model("{", fails="?")
    Hybrid(rule, shown, whole=True)(task(gold), answer)
    assert [r for _, r in shown.asked] == [answer] * asked


class Thinking(Words):
    """Replies with what is given for the answer it is shown, and notes what it is asked."""

    def __init__(self, replies: dict[str, str]):
        super().__init__()
        self.replies, self.asked = replies, list[Request]()

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def generate(self, requests: Any) -> Any:
        self.asked += requests
        said = [self.replies[str(r.prompt).partition("Extracted answer:\n")[2].splitlines()[0]] for r in requests]
        return [[self.episode(r, [text])] for r, text in zip(requests, said, strict=True)]


def test_the_model_is_asked_as_by_the_authors() -> None:
    """Reference and answer and no question, at temperature 0.6; thoughts before the box; other replies say nothing."""
    replies = {
        "1/2": r"Both are a half, \boxed{1}",
        "{": r"Maybe \boxed{1}? It is nonsense: \boxed{0}",
        "7": "1",
        "8": r"\boxed{yes}",
    }
    model = Thinking(replies)
    judge = EquivalenceJudge(model)
    found = judge.map([(task("0.5"), a) for a in (" 1/2 ", "{", "7", "8")] + [(task(None), "1/2")])
    assert [v.passed for v in found] == [True, False, None, None, None]
    assert len(model.asked) == 4 and {r.sampling for r in model.asked} == {Sampling(8192, 0.6, 0.95)}
    for r in model.asked:
        prompt = str(r.prompt)
        assert "What is it?" not in prompt and "0.5" in prompt and "nonsense" in prompt
        assert r"\boxed{1}" in prompt and prompt.rindex(r"\boxed{0}") > prompt.index("nonsense")
    assert judge(task("0.5"), "1/2").passed is True
    # With the question, as the authors' own verifier is asked.
    told = EquivalenceJudge(model, "{question}\n{reference}\nExtracted answer:\n{answer}")
    assert told(task("0.5"), "1/2").passed is True and str(model.asked[-1].prompt).startswith("What is it?\n0.5")
    # Behind the rule.
    hybrid = Hybrid({"name": "exact", "fallback": "none"}, EquivalenceJudge(model))
    assert hybrid(task("x"), "<answer>{</answer>").passed is False
    assert hybrid(task("x"), "<answer>1/2</answer>").passed is True
    with pytest.raises(UsageError, match="equivalence judge"):
        EquivalenceJudge(3)


def test_a_rule_that_cannot_tell_leaves_it_to_the_model() -> None:
    made = build("verify", {"name": "hybrid", "rule": "none", "model": Model("yes"), "unmarked": "line"})
    assert [made(task("x"), text).passed for text in ("so\nyes", "so\nno", "")] == [True, False, None]
    assert made.answer(task("x"), r"\boxed{7}") is not None
    right, wrong, unknown = Verdict.right(), Verdict.wrong(), Verdict.abstain("?")
    table = [either(a, b).passed for a in (right, wrong, unknown) for b in (right, wrong, unknown, None)]
    assert table == [True] * 4 + [True, False, None, False] + [True, None, None, None]


def test_what_both_say_is_kept() -> None:
    rule, model = Verdict(0.3, False, feedback="off by one"), Verdict(0.8, True, feedback=" looks\n right ")
    both = either(rule, model)
    assert (both.score, both.parts) == (0.8, {"rule": 0.3, "model": 0.8})
    assert both.feedback == "rule: off by one; model: looks right"
    alone = either(Verdict.abstain("no rule"), Verdict(0.8, True))
    assert (alone.score, alone.parts, alone.feedback) == (0.8, {"rule": None, "model": 0.8}, "rule: no rule")
    assert either(Verdict(0.3, False), Verdict.abstain("?")).score == 0, "what is not known is worth nothing"


def test_what_is_marked_goes_before_what_is_not() -> None:
    rule = build("verify", {"name": "exact", "fallback": "none"})
    assert extracted(rule, task("x"), "<answer>7</answer>\nso it is", unmarked="line") == "7"
    assert extracted(rule, task("x"), "so it is\n7", unmarked="line") == "7"
    # Nobody could tell: neither part is known.
    assert Hybrid("none", Model(fails="?"), unmarked="line")(task("x"), "?").parts == {"rule": None, "model": None}


def test_what_is_made_of_the_options_is_none() -> None:
    assert "_" not in repr(HybridJudge(use="rule", oracle="exact")) + repr(Hybrid("exact", "exact"))
    for name in ("_model", "_oracle"):
        with pytest.raises(TypeError):
            HybridJudge(use="rule", **{name: None})


def test_plain_numbers() -> None:
    assert all(map(plain_number, ("3", " -3 ", "0.5", ".5", "5.", "1e6", "+2E-3")))
    assert not any(map(plain_number, ("1/2", "1,000", "1_000", "nan", "inf", "x", "", "3 m", "½")))


def test_the_reward_is_either_verdict(make_batch: Any) -> None:
    """Accepted by the rule; by the model; by neither; two numbers; nothing there; the rule failed; the model did."""
    texts = [f"<answer>{a}</answer>" for a in ("{", "{", "a", "4", "", "{", "?")]
    rule: list[bool | None] = [True, False, False, False, False, None, False]
    tasks = [task(gold, "exact") for gold in ("x", "x", "x", "3", "x", "x", "x")]
    batch: Batch = make_batch([1] * 7, passed=rule, texts=texts, tasks=tasks)
    model = Model("{", fails="?")
    found = HybridJudge(model, oracle=Model("<answer></answer>"))(batch)
    assert found.values.tolist() == [1, 1, 0, 0, 0, 0, 0] and found.valid is not None
    assert found.valid.tolist() == [True] * 5 + [False, False]
    assert found.terms["asked"].tolist() == [0, 1, 1, 0, 0, 0, 1] and found.terms["rule"].tolist() == [1] + [0] * 6
    assert found.terms["model"].tolist() == [0, 1] + [0] * 5 and found.terms["verifier"].tolist() == [1, 1] + [0] * 5
    assert found.terms["oracle"].tolist() == [0, 0, 0, 0, 1, 0, 0] and [r for _, r in model.asked] == ["{", "a", "?"]
    alone = HybridJudge(Model("{", "4"), "model")(batch)
    assert alone.values.tolist() == [1, 1, 0, 1, 0, 1, 0] and alone.terms["asked"].tolist() == [1, 1, 1, 1, 0, 1, 1]
    plain = HybridJudge(use="rule")(batch)
    assert plain.values.tolist() == [1, 0, 0, 0, 0, 0, 0] and plain.terms["asked"].sum() == 0
    with pytest.raises(UsageError, match="no model to ask"):
        HybridJudge()


def test_the_static_table() -> None:
    """Six right and four wrong responses, of which a strong generator's are put in ways that the rule misses."""
    labels, said = [True] * 6 + [False] * 4, {"weak": "xxxxxx....", "strong": "xxxxyy...."}
    rows = [Graded(task("x"), a, good, "maths", who) for who in said for a, good in zip(said[who], labels, strict=True)]
    rule = Model("x")
    found = static_table(rows, {"rule": rule, "model": Model("x", "y", ".")})
    strong = found["rule", "maths", "strong"]
    assert (strong.precision.value, strong.recall.value) == (1.0, pytest.approx(0.6667, abs=1e-4))
    assert strong.f1 == pytest.approx(0.8) and strong.kappa == pytest.approx(0.6154, abs=1e-4)
    assert strong.balanced_accuracy == pytest.approx(0.8333, abs=1e-4)
    assert found["rule", "maths", "weak"].recall.value == 1.0
    assert found["model", "maths", "weak"].precision.value == 0.6
    # Behind the rule: what it rejected, two right responses among four wrong ones.
    behind = static_table(rows, {"model": Model("y", ".")}, rejected_by=rule)
    assert behind["model", "maths", "strong"].precision.value == pytest.approx(1 / 3)
    assert behind["model", "maths", "weak"].right == 0
    # E[reward] = p recall + (1 - p) FPR.
    assert pytest.approx(0.265) == 0.3 * 0.86 + 0.7 * 0.01


def test_the_probing_set() -> None:
    tasks = [Task(str(i), f"What is {i + 1} + 100?", f"{i + 101}", "number") for i in range(4)]
    tries = probing_set(tasks, mark="<answer>{}</answer>")
    assert len(PATTERNS) == len(set(PATTERNS)) == 13 and {t.attack for t in tries} == set(PATTERNS)
    assert len(tries) == 4 * 13 and probing_set(tasks, mark="<answer>{}</answer>") == tries != probing_set(tasks, 1)
    assert all(t.response.startswith("<answer>") for t in tries)

    def outcomes(fooled: str) -> list[Outcome]:
        return [Outcome("accepted" if t.attack == fooled else "rejected", 0.0, "", 0.0) for t in tries]

    found = resistance(tries, outcomes("empty_symbols"))
    assert found["worst"]["attack"] == "empty_symbols" and found["worst"]["rate"]["value"] == 1.0
    assert found["overall"]["value"] == pytest.approx(1 / 13) and found["passes"] is False
    assert resistance(tries, outcomes("none"))["passes"] is True
    # The rule that is shipped falls for none of them.
    rule = build("verify", "number")
    assert not any(rule(t.task, t.response).passed for t in tries)


def test_the_flag_goes_up_where_they_part() -> None:
    rise = np.linspace(0.2, 0.8, 21).tolist()
    assert hacked_at(rise, rise) is None and hacked_at(rise, [0.3] * 21) == 9
    assert hacked_at([0.5] * 21, [0.5 - x for x in rise]) is None
    parts = rise[:11] + rise[9::-1]
    # Of records 6 to 15 the last five are for the first time no more right than the first five.
    assert hacked_at(rise, parts) == 15 and np.mean(parts[10:15]) > np.mean(parts[5:10])
    assert (np.mean(parts[6:11]), np.mean(parts[11:16])) == pytest.approx((0.44, 0.41))
    assert hacked_at(rise, [0.3] * 21, window=4) == 3 and hacked_at(rise, [0.3] * 21, least=0.2) is None
    # Two records are enough to compare, of three the middle one is left out, and 0.02 is no rise yet.
    assert hacked_at([0.0, 1.0], [0.5, 0.5], window=2) == 1 and hacked_at([0.0, 9.0, 0.0], [0.5] * 3, window=3) is None
    assert hacked_at([0.0] * 5 + [0.02] * 5, [0.5] * 10) is None
    assert hacked_at([0.0] * 5 + [0.025] * 5, [0.5] * 10) == 9
    for wrong in ((rise, rise[:3], 10), (rise, rise, 1)):
        with pytest.raises(ValueError, match="2 or more"):
            hacked_at(*wrong)


def trained(recall: float, fpr: float, hacked: float) -> tuple[float, float, float]:
    """Exact policy gradient over fifty problems: reward, right answers, and their peak, after four hundred steps."""
    right, hack, peak = np.linspace(-3, 1, 50), -4.0, 0.0
    pays = np.array([recall, fpr, hacked])
    for _ in range(400):
        p = np.exp(np.stack([right, np.zeros(50), np.full(50, hack)], 1))
        p /= p.sum(1, keepdims=True)
        peak = max(peak, float(p[:, 0].mean()))
        gain = pays - (p @ pays)[:, None]
        right, hack = right + 0.15 * p[:, 0] * gain[:, 0], hack + 5 * float((p[:, 2] * gain[:, 2]).mean())
    p = np.exp(np.stack([right, np.zeros(50), np.full(50, hack)], 1))
    p /= p.sum(1, keepdims=True)
    return float((p @ pays).mean()), float(p[:, 0].mean()), peak


def test_hacking_in_expectation() -> None:
    rule, robust, open_ = trained(0.86, 0.01, 0.0), trained(0.98, 0.01, 0.002), trained(0.98, 0.01, 0.9)
    assert rule[1] == pytest.approx(0.97, abs=0.01) and robust[1] == pytest.approx(0.98, abs=0.01)
    assert open_[0] == pytest.approx(0.90, abs=0.01) and open_[1] == pytest.approx(0.002, abs=0.002)
    assert open_[2] == pytest.approx(0.43, abs=0.01)
    assert open_[0] - open_[1] > 0.5 and abs(robust[0] - robust[1]) < 0.05


def test_the_lab_trains_the_method_on_what_hacks_it() -> None:
    setting, arm = Setting(problems=3, steps=12, hack=-1.0), {"name": "S030"}
    open_, robust = (setting.run({**arm, "reward": {**arm, "model": m}}, 0, Path()) for m in ("hackable", "robust"))
    assert open_["gap"] > 0.15 > robust["gap"] and open_["right"] < robust["right"] and open_["hack"] > robust["hack"]


def test_it_acts_in_training(tmp_path: Path) -> None:
    """A model that takes any digit for an answer pays what the rule does not; its terms are logged."""
    made = make_method("S030", reward={"name": "S030", "model": HERE, "unmarked": "whole"})
    assert isinstance(made.reward, HybridJudge) and made.reward.use == "hybrid"
    plain = make_method("S030")
    assert isinstance(plain.reward, HybridJudge) and plain.reward.use == "rule"
    # The authors' script: a wider bound above, tokens of the whole batch alike, no divergence.
    assert plain.objective == ClippedSurrogate(clip_low=0.2, clip_high=0.28, aggregation="token_mean", kl_weight=0.0)
    assay.train(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 32}},
            "tasks": {"source": {"name": "arithmetic", "operation": "addition", "digits": 1}, "eval_size": 2},
            "method": {"name": "S030", "reward": {"name": "S030", "model": HERE, "use": "model", "unmarked": "whole"}},
            "rollout": {"prompts": 4, "group": 8, "max_tokens": 1},
            "train": {"steps": 2},
            "evaluate": {"samples": 1},
            "run": {"dir": str(tmp_path / "run"), "report": False, "tensorboard": False},
        },
        quiet=True,
    )
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "reward/mean" in line]
    assert len(steps) == 2 and all(s["reward/verifier"] == s["reward/model"] > s["reward/rule"] for s in steps)
