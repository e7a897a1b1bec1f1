"""S051: points that critiques share by hand, both branches of the reward, MetaRM's learning, and tournaments."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from claimed import learned
from grouped import grouped
from marked import Critic
from running import metrics, run

from assay import catalogue
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.errors import UsageError
from assay.lab.settings.judges.reasons import Words
from assay.method import Method
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.outcome.critiqued import Critiqued
from assay.rewards.tournaments.double_elimination import Match, Result, double_elimination
from assay.rewards.tournaments.reward import Tournament
from assay.signals.base import Models
from assay.signals.judges import critique_reward
from assay.signals.judges.core_points import CorePoints, f1
from assay.signals.judges.critique_reward import CritiqueReward, scored
from assay.tasks.judging.critiqued import CritiquedPairs, renumbered
from assay.types import Task, Verdict
from assay.verify.pair_critique import TEMPLATE, critique_of

POINTS = ["answer 1 is\nwrong", "answer 2 is kind", "answer 2 is short"]


def reply(words: str, verdict: int = 1) -> str:
    return f"[Critique]\n{words}\n[End of Critique]\n[Verdict]\n\\boxed{{{verdict}}}\n[End of Verdict]"


def said(*points: int | None) -> str:
    return "So: " + json.dumps([{"argument": "x", "point": p} for p in points])


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        (said(1, 3, None, None), 4 / 7),  # P 1/2, R 2/3
        (said(1, 1, 1), 1 / 3),  # one point, said three times
        (said(1, 2, 3), 1.0),
        (said(None, None), 0.0),
        ("[]", 0.0),
        (said(4), None),
        (said(0), None),
        ('[{"argument": "x"}]', None),
        ('[{"argument": "x", "point": true}]', None),
        ('[{"argument": "x", "point": "1"}]', None),
        ("[1]", None),
        ("none", None),
        ("[1, 2", None),
        ("[1, 2,]", None),
    ],
)
def test_points_by_hand(answer: str, value: float | None) -> None:
    matcher = Critic(lambda p, k: answer)
    assert CorePoints(matcher).f1([(POINTS, "It is."), (POINTS, " \n")]) == [pytest.approx(value), 0.0]
    [request] = matcher.asked  # nobody is asked about nothing
    assert (
        "1. answer 1 is wrong\n2. answer 2 is kind\n3. answer 2 is short\n\nThe other critique:\nIt is.\n"
        in request.prompt
    )
    assert request.sampling.temperature == 0 and request.sampling.max_tokens == 1024
    assert f1(2, 3, 4) == pytest.approx(0.571429, abs=1e-6) and f1(0, 3, 0) == 0 and f1(3, 5, 3) == 0.75


def test_points_are_taken_out_once() -> None:
    replies = iter(["no list", '["a", " "]', "[]", "[3]", '["first", "second"]'])
    matcher = Critic(lambda p, k: next(replies))
    points = CorePoints(matcher)
    assert [points.points(["A critique."]) for _ in range(4)] == [[None]] * 4
    assert points.points(["A critique.", "A critique."]) == [["first", "second"]] * 2
    assert points.points(["A critique."]) == [["first", "second"]] and len(matcher.asked) == 5
    assert "\nA critique.\n" in matcher.asked[0].prompt
    failing = CorePoints(Critic(lambda p, k: None))
    assert failing.points(["x"]) == [None] and failing.f1([(["p"], "x")]) == [None]
    with pytest.raises(UsageError, match="need a matcher"):
        CorePoints(None)


def test_where_a_critique_stands() -> None:
    assert critique_of(reply(" It is.\nSo. ")) == "It is.\nSo." and critique_of("It is.") == ""
    assert critique_of(reply("one") + reply("two")) == "two" and critique_of("[critique]a[end of critique]") == "a"
    assert "[Critique]" in TEMPLATE and "[Verdict]\n\\boxed{1 or 2}\n[End of Verdict]" in TEMPLATE


def judged(*rows: tuple[str, bool | None], **meta: Any) -> Batch:
    """Replies to one task, with their verdicts; its judge is told of ``meta``."""
    batch = grouped([text for text, _ in rows])
    batch.tasks = [replace(task, meta=meta) for task in batch.tasks]
    batch.verdicts = [Verdict(float(bool(p)), p) for _, p in rows]
    return batch


def models() -> Models:
    return Models(TabularPolicy(Tree.bandit(2)))


def worth(signal: CritiqueReward, batch: Batch) -> torch.Tensor:
    batch.signals[signal.name] = signal(batch, models())
    return batch.signals[signal.name]


def started(answer: Callable[[str], str | None], **options: Any) -> CritiqueReward:
    signal = CritiqueReward(Critic(lambda p, k: answer(str(p))), model=Words(), **options)
    signal.start(models())
    return signal


def by_words(prompt: str) -> str | None:
    """Of the points the critique makes the first if it says so."""
    told = prompt.partition("The other critique:\n")[2].partition("\n")[0]
    return None if told == "a mistake" else said(1, None) if told == "what decides it" else said(None)


def test_rewards_by_hand() -> None:
    """F1 = 2 / (2 + 2) of one point of two by two arguments; it counts where the label is right."""
    signal = started(by_words)
    batch = judged(
        (reply("what decides it"), True),
        (reply("a trifle"), True),
        (reply("what decides it", 2), False),
        ("no critique", True),
        (reply("a mistake"), True),  # the matcher fails
        (reply("what decides it"), None),
        points=["p", "q"],
    )
    assert worth(signal, batch)[:4].tolist() == [0.5, 0, 0.5, 0] and bool(batch.signals["critique_f1"][4].isnan())
    found = Critiqued(signal)(batch)
    assert found.values[:4].tolist() == [1.5, 1, 0, 1]
    assert found.valid is not None and found.valid.tolist() == [True] * 4 + [False] * 2
    assert found.terms["process"][4] == 0, "what could not be matched"
    terms = {name: values[:4].tolist() for name, values in found.terms.items()}
    assert terms == {"outcome": [1, 1, 0, 1], "process": [0.5, 0, 0.5, 0], "sound": [0.5, 0, 0, 0]}
    assert Critiqued(signal, 0.3)(batch).values[:2].tolist() == pytest.approx([1.15, 1])
    assert Critiqued(signal, 0.0)(batch).values[:4].tolist() == [1, 1, 0, 1]
    assert all(bool(x.isfinite().all()) for x in found.terms.values())


def test_which_branch_a_task_belongs_to() -> None:
    """Without a critique of a person's MetaRM says 1/2 at first, and nobody is asked; points are taken out of one."""
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return '["p", "q"]' if "Leave out remarks" in prompt else said(1, None)

    signal, texts = started(answer), ((reply("what decides it"), True), ("none", True))
    assert worth(signal, judged(*texts)).tolist() == [0.5, 0] and not asked
    batch = judged(*texts, critique="One decides it.")
    assert worth(signal, batch).tolist() == [0.5, 0] and len(asked) == 2 and "\nOne decides it.\n" in asked[0]
    assert "1. p\n2. q\n" in asked[1] and batch.signals["critique_f1"].tolist() == [0.5, 0]
    unread = started(lambda p: "none")
    assert bool(worth(unread, judged(*texts, critique="c")).isnan().all())
    bare = CritiqueReward()
    part = Critiqued(bare)
    part.check_tasks([Task("t", "q")])
    for meta in ({"critique": "c"}, {"points": ["p"]}):
        with pytest.raises(UsageError, match="give a matcher"):
            part.check_tasks([Task("t", "q"), Task("u", "q", meta=meta)])
    assert CritiqueReward(epochs=1).epochs == 1 and bare.max_grad_norm == 1.0 and bare.trains_model
    assert CritiqueReward(Critic(lambda p, k: "")).points.max_tokens == 1024  # type: ignore[union-attr]
    assert unread.optimizer.param_groups[0]["lr"] == pytest.approx(10 * models().lr)
    for options in ({"epochs": 0}, {"lr": 0.0}, {"max_grad_norm": 0.0}):
        with pytest.raises(UsageError, match="epochs >= 1"):
            CritiqueReward(**options)  # type: ignore[arg-type]


def test_a_model_of_rewards_learns() -> None:
    """A step by mean squared error of what is known, (.5 - .5)^2 and (.5 - 0)^2; what is not known teaches nothing."""
    signal = started(by_words, lr=0.1)
    rows = ((reply("what decides it"), True), (reply("a trifle"), False), (reply("a mistake"), True), ("none", True))
    batch = judged(*rows, points=["p", "q"])
    worth(signal, batch)
    assert signal.learn(batch, models()) == {"meta/known": 0.5, "meta/loss": pytest.approx(0.125)}
    told = worth(signal, judged(*rows))
    assert told[0] == pytest.approx(0.5) and told[1] < 0.49 and told[2] == 0.5
    for _ in range(60):
        signal.learn(batch, models())
    assert worth(signal, judged(*rows))[1] < 0.1
    other = judged(*rows)
    worth(signal, other)
    assert signal.learn(other, models()) == {"meta/known": 0.0}
    frozen = started(by_words, learns=False)
    worth(frozen, batch)
    assert frozen.learn(batch, models()) == {"meta/known": 0.5} and worth(frozen, judged(*rows))[1] == 0.5
    again = started(by_words)
    again.load_state_dict(signal.state_dict())
    assert torch.equal(worth(again, judged(*rows)), worth(signal, judged(*rows)))
    many = [(Task("t", "q"), "a trifle", 1.0)] * 40
    assert started(by_words).step(many) == pytest.approx(0.25)


def test_a_cold_start(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    rows = [("what decides it", 1.0), ("a trifle", 0.25)]
    path.write_text("".join(json.dumps({"question": "q", "critique": c, "score": s}) + "\n" for c, s in rows * 9))
    signal = started(by_words, cold_start=path, epochs=40, lr=0.3)
    found = worth(signal, judged(*((reply(words), True) for words, _ in rows)))
    assert found.tolist() == pytest.approx([1, 0.25], abs=0.05) and CritiqueReward().epochs == 3
    assert [(t.question, text, value) for t, text, value in scored(path)[:2]] == [("q", *row) for row in rows]
    # Each epoch has every row once, in an order of its own, by sixteen.
    kept: list[list[str]] = []

    class Kept(CritiqueReward):
        def step(self, examples: Any) -> float:
            kept.append([text for _, text, _ in examples])
            return 0.0

    each = [{"question": "q", "critique": f"{k}", "score": 0} for k in range(18)]
    path.write_text("".join(json.dumps(row) + "\n" for row in each))
    Kept(cold_start=path, epochs=2, model=Words()).start(models())
    assert [len(rows) for rows in kept] == [16, 2, 16, 2] and kept[0] != kept[2]
    assert sorted(kept[0] + kept[1]) == sorted(kept[2] + kept[3]) == sorted(f"{k}" for k in range(18))
    for row in ({"question": "q", "critique": "c"}, {"question": "q", "critique": "c", "score": 1.1}):
        path.write_text(json.dumps(row))
        with pytest.raises(UsageError, match=r"critique and score in \[0, 1\]"):
            scored(path)


PAIR = {"prompt": "How?", "chosen": "So.", "rejected": "Thus."}


def test_pairs_with_critiques(tmp_path: Path) -> None:
    assert renumbered("Answer 1 and response 2, not 1; Assistant #2, answer 12") == (
        "Answer 2 and response 1, not 1; Assistant #1, answer 12"
    )
    path = tmp_path / "pairs.jsonl"
    told = {"critique": "Answer 1 is so.", "points": ["response 2 is not"]}
    path.write_text("\n".join(map(json.dumps, ({**PAIR, **told}, PAIR, {**PAIR, **told, "first": "rejected"}))))
    source = CritiquedPairs(path)
    found = {(t.meta["pair"], t.reference): (t.meta.get("critique"), t.meta.get("points")) for t in source.tasks}
    plain, turned = ("Answer 1 is so.", ["response 2 is not"]), ("Answer 2 is so.", ["response 1 is not"])
    assert found == {
        (0, "1"): plain,
        (0, "2"): turned,
        (1, "1"): (None, None),
        (1, "2"): (None, None),
        (2, "1"): turned,
        (2, "2"): plain,
    }
    assert source.size == 6 and source[0].kind == "pair_verdict" and "[Critique]" in source[0].question
    assert [t.id for t in source.tasks] != [t.id for t in CritiquedPairs(path, seed=1).tasks]
    for wrong in ({"critique": 1}, {"points": "p"}, {"points": [1]}, {"first": "1"}):
        path.write_text(json.dumps({**PAIR, **wrong}))
        with pytest.raises(UsageError, match="first is chosen or rejected"):
            CritiquedPairs(path)


def played(n: int, better: Callable[[int, int], bool]) -> tuple[Result, list[list[Match]]]:
    play, rounds = double_elimination(n), []
    try:
        pairs = next(play)
        while True:
            rounds.append(pairs)
            pairs = play.send([better(a, b) for a, b in pairs])
    except StopIteration as over:
        return over.value, rounds


def test_double_elimination() -> None:
    """Of four the two best come first in their order, whatever the order; nobody is out before a second defeat."""
    for order in itertools.permutations(range(4)):
        found, _ = played(4, lambda a, b, q=order: q[a] > q[b])  # type: ignore[misc]
        assert found.places[order.index(3)] == 0 and found.places[order.index(2)] == 1
        assert sum(found.places) == 6 and found.losses[order.index(3)] == 0 and found.matches == 6
        assert all(found.losses[i] == 2 for i in range(4) if i != order.index(3))
    found, rounds = played(4, lambda a, b: a < b)
    assert rounds == [[(0, 1), (2, 3)], [(0, 2), (1, 3)], [(1, 2)], [(0, 1)]] and found.places == (0, 1, 2, 3)
    found, rounds = played(3, lambda a, b: a < b)
    assert rounds == [[(0, 1)], [(0, 2)], [(1, 2)], [(0, 1)]] and found.places == (0, 1, 2)
    # The undefeated one loses the final, and the second.
    found, rounds = played(2, lambda a, b: (a, b) == (0, 1))
    assert rounds == [[(0, 1)], [(0, 1)]] and found == Result((0.0, 1.0), (0, 2), 2)
    wins = iter([True, False, False])
    found, rounds = played(2, lambda a, b: next(wins))
    assert rounds == [[(0, 1)]] * 3 and found == Result((1.0, 0.0), (2, 1), 3)
    found, _ = played(8, lambda a, b: a < b)
    assert found.places == (0, 1, 4.5, 6.5, 3, 2, 4.5, 6.5) and found.matches == 14
    assert played(1, lambda a, b: True) == (Result((0.0,), (0,), 0), [])
    with pytest.raises(ValueError, match="needs a player"):
        next(double_elimination(0))


def larger(prompt: Any, k: int) -> str | None:
    """A judge who prefers the larger number, and fails on what is none."""
    one, other = (str(prompt).partition(f"<answer-{k}>\n")[2].partition("\n")[0] for k in (1, 2))
    if "x" in (one, other):
        return "I cannot tell."
    return reply("as it is", 1 if int(one) > int(other) else 2)


def test_responses_are_ranked() -> None:
    judge = Critic(larger)
    batch = grouped(["3", "10", "7", "5"], ["8"], ["1", "x", "2"], ["4", "broken", "6"])
    found = Tournament(judge)(batch)
    assert found.values.tolist()[:4] == pytest.approx([0, 1, 2 / 3, 1 / 3]) and found.values.tolist()[8:] == [0, 0, 1]
    assert found.valid is not None
    assert found.valid.tolist() == [True] * 4 + [False] * 4 + [True, False, True]
    shown = [str(r.prompt) for r in judge.asked]
    firsts = [int(p.partition("<answer-1>\n")[2].partition("\n")[0].replace("x", "0")) for p in shown]
    seconds = [int(p.partition("<answer-2>\n")[2].partition("\n")[0].replace("x", "0")) for p in shown]
    assert len({a > b for a, b in zip(firsts, seconds, strict=True)}) == 2  # either may be shown first
    assert judge.asked[0].sampling.temperature == 0 and judge.asked[0].sampling.max_tokens == 4096
    backwards = Tournament(Critic(larger))(batch.rows(torch.arange(11).flip(0))).values.flip(0)
    assert torch.equal(backwards, found.values)
    with pytest.raises(UsageError, match="must show"):
        Tournament(judge, "{question}")


def test_it_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a nano model writes is taken for a critique that says nothing: MetaRM learns that after each step."""
    monkeypatch.setattr(critique_reward, "critique_of", lambda text: f"{text}.")
    matcher = {"name": "keywords", "replies": [], "otherwise": "[]"}
    made = catalogue.make("S051")
    assert isinstance(made, Method) and isinstance(made.reward, Critiqued) and isinstance(made.credit, GRPO)
    assert made.reward.weight == 1 and made.reward.critiques.learns and made.objective.kl_weight == 0  # type: ignore[attr-defined]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps({**PAIR, "prompt": f"{k}", "points": ["p"]}) + "\n" for k in range(12)))
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 800, "alphabet": alphabet}},
        tasks={"source": {"name": "critiqued_pairs", "path": str(path)}, "eval_size": 1, "eval_share": 0.4},
        method={
            "name": "S051",
            "reward": None,
            "options": {"matcher": matcher, "lr": 0.01},
        },
        rollout={"prompts": 1, "group": 2, "max_tokens": 4},
        warmup={"steps": 0},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 1},
    )
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert [row["meta/known"] for row in steps] == [1, 1] and steps[0]["meta/loss"] == 0.25 > steps[1]["meta/loss"]
    assert all(row["reward/process"] == row["reward/outcome"] == 0 for row in steps)
    with pytest.raises(UsageError, match="give a matcher"):
        run(
            tmp_path / "other",
            tasks={"source": {"name": "critiqued_pairs", "path": str(path)}, "eval_size": 1, "eval_share": 0.4},
            method={"name": "S051", "reward": None},
            warmup={"steps": 0},
        )


def test_sound_reasons_in_the_lab() -> None:
    options: dict[str, Any] = {"steps": 30, "pairs": 6, "told": 2, "lr": 2.0}
    found, alone = (learned("S051", arm, **options) for arm in ("rm-nlhf", "outcome alone"))
    assert found["sound"] > alone["sound"] + 0.1 and found["spurious"] < alone["spurious"]
    assert found["rollouts"] == 30 * 6 * 8
