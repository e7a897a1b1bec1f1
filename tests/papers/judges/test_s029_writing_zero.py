"""S029: what a judge writes, its tasks, comparisons within a group, what is left out, and a bandit of qualities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from grouped import grouped
from marked import Critic
from running import metrics, run

from assay import catalogue
from assay.credit.reinforce import Reinforce
from assay.errors import UsageError
from assay.method import Method
from assay.rewards.judges.against_member import AgainstMember
from assay.rewards.judges.scored_pairs import ScoredPairs
from assay.select.reward_balance import RewardBalance
from assay.tasks.judging.pairs import Pairs, by_order, pair_tasks
from assay.types import Task
from assay.verify.pair_scores import PairScores, in_form, pair_scores, untagged

GOOD = "Principles: rhyme, half\nCritique: the first rhymes\nScores: {}, {}"
SHOWN = "{question}|{first}|{second}"


def scoring(prompt: str, k: int = 0) -> str:
    """Scores that answers are called by; ``?`` cannot be read, ``*`` scores more in the first place."""
    _, first, second = prompt.split("|")
    if "?" in first + second:
        return "I like both."
    score = [float(x.strip("*")) + (("*" in x) and place == 0) for place, x in enumerate((first, second))]
    return GOOD.format(*score)


def judged(texts: Sequence[str], **options: Any) -> tuple[list[float], list[bool], list[float]]:
    judge = ScoredPairs(Critic(scoring), template=SHOWN, **options)
    found = AgainstMember(judge)(grouped(list(texts)))
    assert found.valid is not None
    return found.values.tolist(), found.valid.tolist(), found.terms["reference"].tolist()


def test_a_comparison_is_read() -> None:
    assert pair_scores(GOOD.format(7.5, 6)) == (7.5, 6.0) and pair_scores("**Scores**: 10, 0.25.") == (10, 0.25)
    assert pair_scores("Scores: 1, 2\nScores: 3, 4") == (3, 4)
    assert pair_scores("Scores: 10.1, 2") is None and pair_scores("Scores: 3") is None and pair_scores("") is None
    judge = PairScores()
    right = judge(Task("t", "q", "1"), GOOD.format(7.5, 6))
    assert (right.score, right.passed, right.parts) == (1, True, {"readable": 1, "form": 1, "margin": 0.15})
    wrong = judge(Task("t", "q", " 2 "), GOOD.format(7.5, 6))
    assert (wrong.score, wrong.passed, wrong.parts["margin"]) == (0, False, 0)
    assert judge(Task("t", "q", "1"), GOOD.format(6, 6)).passed is False
    bare = judge(Task("t", "q", "1"), "Scores: 7, 6")
    assert (bare.score, bare.passed, bare.parts) == (0, False, {"readable": 1, "form": 0, "margin": 0.1})
    mute = judge(Task("t", "q", "1"), "Principles: a\nCritique: b\nScores: none")
    assert (mute.score, mute.passed, mute.parts) == (0, False, {"readable": 0, "form": 1}) and "Scores" in mute.feedback
    assert judge(Task("t", "q", "3"), GOOD.format(7, 6)).passed is None
    for bad in ("Hm. " + GOOD, GOOD.replace("rhyme, half", "-"), GOOD + "\nScores: 1, 2", "Critique: a\n" + GOOD, ""):
        assert not in_form(bad)
    assert in_form("\n" + GOOD.format(1, 2)) and untagged("a</Answer-1><request>b</answer-3>") == "ab</answer-3>"


def test_tasks_of_a_judge(tmp_path: Path) -> None:
    path, keep = tmp_path / "pairs.jsonl", tmp_path / "kept.jsonl"
    rows = [{"prompt": f"q{k}", "chosen": f"good{k}", "rejected": f"bad{k}</answer-2>"} for k in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tasks = Pairs(path)
    assert tasks.size == 6 and sorted(str(tasks[i].reference) for i in range(6)) == ["1", "1", "1", "2", "2", "2"]
    for i in range(6):
        task = tasks[i]
        shown, k = str(task.prompt), task.meta["pair"]
        assert task.kind == "pair_scores" and f"<request>\nq{k}\n" in shown
        first = "answer-1>\ngood" in shown
        assert (task.reference == "1") == first and shown.count("</answer-2>") == 1
    assert [t.id for t in Pairs(path, seed=1).tasks] != [t.id for t in tasks.tasks]

    def teach(prompt: str, k: int) -> str | None:
        """Right about q0 at the second try, about q1 where it is shown first, of q2 never in form."""
        better = "<answer-1>\ngood" in prompt
        score = (7, 3) if better else (3, 7)
        if "q0" in prompt:
            return None if k == 0 else GOOD.format(*score)
        return GOOD.format(7, 3) if "q1" in prompt else "Scores: {}, {}".format(*score)

    made = Pairs(path, teacher=Critic(teach), keep=keep)
    assert sorted(t.id.partition("/")[2] for t in made.tasks) == ["0/1", "0/2", "1/1"]
    assert {t.solution for t in made.tasks} == {GOOD.format(7, 3), GOOD.format(3, 7)}
    assert Pairs(path, teacher=Critic(lambda p, k: 1 / 0), keep=keep).tasks == made.tasks
    with pytest.raises(UsageError, match="none of 4 comparisons"):
        Pairs(path, teacher=Critic(lambda p, k: "no"), keep=tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="teacher and keep together"):
        Pairs(path, keep=tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="must show"):
        Pairs(path, template="{question} {first}")
    (tmp_path / "one.jsonl").write_text(json.dumps({"prompt": "q", "completion": "a"}))
    with pytest.raises(UsageError, match="is no preference"):
        Pairs(tmp_path / "one.jsonl")


def test_accuracy_by_order() -> None:
    responses = [{"text": "a", "reward": 1.0}, {"text": "b", "reward": 0.0}]
    tasks = pair_tasks([Task(f"p/{k}", "q", meta={"responses": responses}) for k in range(4)], np.random.default_rng(0))
    right = {"p/0/1", "p/0/2", "p/1/1", "p/2/1", "p/3/2"}
    found = by_order(tasks, [t.id in right for t in tasks])
    assert (found.first, found.second, found.both, found.bias) == (0.75, 0.5, 0.25, 0.125)
    assert by_order([t for t in tasks if t.id != "p/3/1"], [True] * 7).both == 1
    with pytest.raises(ValueError, match="both orders"):
        by_order(tasks[:1], [True])


def test_worked_numbers() -> None:
    """The card's scores 7.5, 6, 8.2, 6, 5, in the order in which the second is the reference; a level one loses."""
    values, valid, reference = judged(["7.5", "6.0", "8.2", "6.00", "5.0"])
    scores = np.array([7.5, 6.0, 8.2, 6.0, 5.0])
    r = reference.index(1)
    expected = np.where(scores > scores[r], 1.0, -1.0)
    expected[r] = 0
    assert values == expected.tolist() and all(valid) and sum(reference) == 1
    # Whoever is the reference, by lot: all of them are, for some question.
    seen = set()
    for k in range(60):
        found = AgainstMember(ScoredPairs(Critic(scoring), template=SHOWN))(grouped([f"7.5{'0' * k}", "6.0", "8.2"]))
        seen.add(tuple(found.values.tolist()))
    assert seen == {(0.0, -1.0, 1.0), (1.0, 0.0, 1.0), (-1.0, -1.0, 0.0)}


def test_who_has_to_agree() -> None:
    items = [("q", "3", "2"), ("q", "2", "3"), ("q", "3", "3"), ("q", "*3", "*3"), ("q", "?", "1")]
    assert ScoredPairs(Critic(scoring), template=SHOWN).beats(items) == [True, False, False, False, None]

    def voting(prompt: str, k: int) -> str | None:
        """The second of three votes is against ``b``; the third on ``c`` cannot be read, nor comes that on ``d``."""
        first = prompt.split("|")[1]
        if first == "d" and k == 2:
            return None
        if first == "c" and k == 2:
            return "?"
        against = first == "b" and k == 1
        mine = 3 if against else 7
        return GOOD.format(mine, 10 - mine) if first != "x" else GOOD.format(10 - 7, 7)

    critic = Critic(voting)
    judge = ScoredPairs(critic, votes=3, template=SHOWN)
    items = [("q", one, "x") for one in "abcd"]
    assert judge.beats(items) == [True, False, None, None]
    assert ScoredPairs(Critic(voting), votes=2, template=SHOWN).beats(items) == [True, False, True, True]
    assert critic.asked[0].n == 3 and critic.asked[0].sampling.temperature == 1
    greedy = Critic(voting)
    ScoredPairs(greedy, template=SHOWN).beats(items + items)
    assert greedy.asked[0].sampling.temperature == 0 and greedy.asked[0].sampling.max_tokens == 2048
    assert len(greedy.asked) == 8  # equal questions once
    assert ScoredPairs(greedy).prompt("q", "</answer-1>a", "b").count("</answer-1>") == 1
    for bad in ({"votes": 0}, {"template": "{first}{second}"}):
        with pytest.raises(UsageError, match="the judge of pairs"):
            ScoredPairs(greedy, **bad)  # type: ignore[arg-type]


def test_who_has_a_reward() -> None:
    """One that cannot be compared has none, nor one that is alone among the judged, nor a broken one."""
    values, valid, reference = judged(["3", "?", "4"])
    r = reference.index(1)
    assert all(value == 0 for value, known in zip(values, valid, strict=True) if not known)
    assert (valid == [True, False, True]) if r != 1 else (valid == [False, True, False])
    found = AgainstMember({"judge": Critic(scoring), "template": SHOWN})(grouped(["1", "broken"], ["2", "3", "broken"]))
    assert found.valid is not None and found.valid.tolist() == [False, False, True, True, False]
    assert found.values.tolist()[:2] == [0, 0] and sorted(map(abs, found.values.tolist()[2:])) == [0, 0, 1]


def test_a_liking_for_the_first_place_leaves_nothing() -> None:
    values, valid, _ = judged(["*3.0", "*3.1", "*3.2", "*3.3", "*3.4", "*3.5"])
    assert sorted(values) == [-1] * 5 + [0] and all(valid)
    batch = grouped(["a"] * 6)
    batch.rewards = torch.tensor(values, dtype=torch.float64)
    assert RewardBalance()(batch).tolist() == [0] * 6


def test_equals_earn_nothing_on_average() -> None:
    """Of equally good responses, whose worths are drawn anew, each earns 0 on average."""
    rng, total = np.random.default_rng(0), np.zeros(4)
    for _ in range(400):
        total += judged([f"{x:.6f}" for x in rng.uniform(0, 10, 4)])[0]
    assert np.abs(total / 400).max() < 0.15 and abs(total.mean() / 400) < 0.06


def test_what_is_left_out() -> None:
    """Of 16, |sum| 9 is kept and 10 is not; those without a reward are not counted."""
    batch = grouped(["a"] * 16, ["a"] * 16, ["a"] * 5)
    rows = [[1.0] * 12 + [-1.0] * 3 + [0.0], [-1.0] * 13 + [1.0] * 3, [1.0, 1.0, 1.0, 0.0, 0.0]]
    batch.rewards = torch.tensor(np.concatenate(rows), dtype=torch.float64)
    assert RewardBalance()(batch).tolist() == [1.0] * 16 + [0.0] * 16 + [1.0] * 5  # 9, 10 of 16; 3 of 5
    batch.valid[-1] = False
    assert RewardBalance()(batch).tolist()[-5:] == [0.0] * 5  # 3 of 4
    assert RewardBalance(0.8)(batch).tolist()[-5:] == [1.0] * 5
    batch.rewards[16:32] = torch.tensor([1.0, -1.0] * 8)
    assert RewardBalance(0.0)(batch).tolist() == [0.0] * 16 + [1.0] * 16 + [0.0] * 5
    for bad in (-0.1, 1.1):
        with pytest.raises(UsageError, match="must lie in"):
            RewardBalance(bad)


def test_a_bandit_of_qualities() -> None:
    """The policy moves to the best answer; an offset of the prompt's scores, the same for all, changes nothing."""
    found = [learned("S029", "compared", offset=c, steps=40, problems=4, noise=0.1) for c in (0.0, 100.0)]
    assert found[0]["worth"] == pytest.approx(found[1]["worth"], abs=1e-6) and found[0]["worth"] > 0.3


def test_it_acts_in_training(tmp_path: Path) -> None:
    made = catalogue.make("S029", judge=Critic(scoring), votes=2)
    assert isinstance(made, Method) and isinstance(made.reward, AgainstMember) and made.credit == Reinforce()
    assert (made.select, made.reward.judge.votes) == (RewardBalance(0.6), 2)
    assert catalogue.make("S029", judge=Critic(scoring)).reward.judge.votes == 1
    assert catalogue.make("S029", judge={"judge": Critic(scoring), "votes": 5}).reward.judge.votes == 5
    judge = {
        "name": "keywords",
        "replies": [[r"(?s)<answer-1>\n\S*[0-4]", GOOD.format(7, 3)]],
        "otherwise": GOOD.format(3, 7),
    }
    folder = run(
        tmp_path / "run",
        tasks={"source": {"name": "arithmetic", "operation": "addition", "digits": 1}},
        method={"name": "S029", "reward": None, "options": {"judge": judge, "most": 1.0}},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        warmup={"steps": 0},
        evaluate={"every": 0},
    )
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(steps) == 2
    for row in steps:  # One of three is the reference; the others are -1 or 1.
        assert row["reward/reference"] == pytest.approx(1 / 3)
        assert row["reward/mean"] == pytest.approx(2 * row["reward/win"] - 2 / 3)
