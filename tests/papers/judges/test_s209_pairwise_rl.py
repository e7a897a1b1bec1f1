"""S209: preferences over a prompt's own answer by hand, the judge's loss, and both trainings."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from grouped import grouped
from marked import Critic
from preferring import Prefers
from running import metrics, run

from assay import catalogue
from assay.batch import Batch
from assay.credit.gae import GAE
from assay.errors import RunError, UsageError
from assay.method import Method
from assay.objectives.judges.both_orders import BothOrders
from assay.rewards.judges.anchored_pairs import AnchoredPairs, anchor
from assay.rewards.judges.pair_judge import PairJudge
from assay.rewards.shaping.weighted import WeightedSum
from assay.rollout.judges.pair_orders import PairOrders
from assay.types import Ask, Task

HERE = f"{Path(__file__).parents[1] / 'preferring.py'}:Prefers"


def anchored(*rows: list[str], **meta: Any) -> Batch:
    batch = grouped(*rows)
    batch.tasks = [replace(task, **meta) for task in batch.tasks]
    return batch


def number(text: str) -> float | None:
    return None if text == "?" else float(text)


class Said(PairJudge):
    """P(y is better | shown first) = .8, P(a is better | shown first) = .35."""

    def preferences(self, items: Any) -> list[float | None]:
        return [0.8 if first == "y" else 0.35 for _, first, _ in items]


def test_worked_numbers() -> None:
    batch, judge = anchored(["y"], solution="a"), Said(Critic(lambda p, k: ""))
    found = AnchoredPairs(judge)(batch)
    assert found.values.tolist() == pytest.approx([0.225])
    assert {k: v.tolist() for k, v in found.terms.items()} == {"preference": pytest.approx([0.725]), "better": [1.0]}
    assert AnchoredPairs(judge, "logit")(batch).values.tolist() == pytest.approx([0.969401], abs=1e-6)
    sure = AnchoredPairs(PairJudge(Prefers(number)), "logit")(anchored(["400", "-400"], solution="0"))
    assert sure.values.tolist() == pytest.approx([math.log(2**20 - 1), -math.log(2**20 - 1)])


def test_the_anchor_earns_nothing() -> None:
    judge = {"judge": Prefers(number, bias=2.0)}
    for form in ("probability", "logit"):
        found = AnchoredPairs(judge, form)(anchored(["3", "4", "2"], solution="3"))  # type: ignore[arg-type]
        assert found.values[0] == pytest.approx(0, abs=1e-6) and found.values[1] > 0 > found.values[2]
        assert found.values[1] == pytest.approx(-found.values[2]) and found.terms["better"].tolist() == [0, 1, 0]


def test_an_offset_cancels() -> None:
    own, moved = (
        AnchoredPairs(Prefers(lambda x, c=c: float(x) + c))(anchored(["3", "5.5"], solution="4")).values
        for c in (0.0, 7.0)
    )
    assert own.tolist() == pytest.approx(moved.tolist(), abs=1e-6) and own[1] > 0 > own[0]


def test_what_is_compared() -> None:
    full = Task("t", "q", reference="ref", solution="sol", meta={"anchor": "own"})
    assert anchor(full) == "own" and anchor(replace(full, meta={})) == "sol"
    assert anchor(replace(full, meta={}, solution=None)) == "ref"
    part = AnchoredPairs(Prefers(number))
    part.check_tasks([full])
    with pytest.raises(UsageError, match="task u has no answer to compare with"):
        part.check_tasks([full, Task("u", "q")])
    found = part(anchored(["3", "broken", "?"], solution="4"))
    assert found.valid is not None and found.valid.tolist() == [True, False, False]
    assert found.values.tolist()[1:] == [0, 0] and found.values[0] < 0


def preference(**more: Any) -> Task:
    responses = [{"text": 'good "one"', "reward": 1.0}, {"text": "bad", "reward": 0.0}]
    return Task("t", "Which?", meta={"responses": responses, **more})


class Tokens(Prefers):
    """Reads a text as its characters."""

    def encode(self, prompt: Any) -> np.ndarray:
        return np.array([ord(c) for c in str(prompt)], dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text + ("$" if end else ""))


def test_what_a_judge_learns_from() -> None:
    """Its prompts are those that the judge of pairs is asked, its replies the names of the better answer."""
    made = PairOrders(None)  # type: ignore[arg-type]
    [group] = made.collect([Ask(preference(), 5)], Tokens(), np.random.default_rng(0))
    judge = PairJudge(Tokens())
    shown = ["".join(map(chr, e.prompt)) for e in group.episodes]
    good, bad = 'good "one"', "bad"
    assert shown == [judge.prompt("Which?", good, bad), judge.prompt("Which?", bad, good)]
    assert [e.text for e in group.episodes] == ["m", "M"] and [e.tokens.tolist() for e in group.episodes] == [
        [109],
        [77],
    ]
    assert all(e.mask.all() for e in group.episodes) and [v.score for v in group.verdicts] == [1, 1]
    plain = PairOrders(None, "{question}{first}/{second}", ("yes", "no"), escape=False)  # type: ignore[arg-type]
    first, second = plain.episodes(preference(), Tokens())
    assert "".join(map(chr, second.prompt)) == 'Which?bad/good "one"' and (first.text, second.text) == ("yes", "no")
    with pytest.raises(RunError, match="is no preference"):
        made.episodes(Task("t", "q", solution="a"), Tokens())


def test_the_loss_by_hand() -> None:
    """Replies of probability .8 and .65: p_12 = .8, p_21 = .35; a group that is no pair counts by its replies."""
    batch = grouped(["m", "M"], ["m"])
    logprobs = torch.tensor([[0.8], [0.65], [0.5]], dtype=torch.float64).log()
    found = BothOrders()(logprobs, batch)
    entropy = -(math.log(0.8) + math.log(0.65) + math.log(0.5)) / 3
    assert float(found.value) == pytest.approx(entropy + 0.0225 / 2)
    assert float(BothOrders(4.0)(logprobs, batch).value) == pytest.approx(entropy + 4 * 0.0225 / 2)
    assert found.metrics == {"judge/right": pytest.approx(2 / 3), "judge/place": pytest.approx(0.075)}
    even = torch.tensor([[0.7], [0.7], [0.5]], dtype=torch.float64).log()
    assert float(BothOrders()(even, batch).value) == pytest.approx(float(BothOrders(0.0)(even, batch).value))
    batch.valid[1] = False  # A reply without its twin
    assert float(BothOrders()(logprobs, batch).value) == pytest.approx(-(math.log(0.8) + math.log(0.5)) / 2)
    with pytest.raises(UsageError, match="below 0"):
        BothOrders(-0.1)


def test_pairs_of_a_batch() -> None:
    """Gaps .15 and .6; then the last reply is empty, and its twin counts alone; then one reply is all there is."""
    batch = grouped(["m", "M"], ["m", "M"])
    logprobs = torch.tensor([[0.8], [0.65], [0.9], [0.3]], dtype=torch.float64).log().requires_grad_()
    assert BothOrders()(logprobs, batch).metrics == {"judge/right": 0.75, "judge/place": pytest.approx(0.1875)}
    batch.mask[3] = False
    found = BothOrders()(logprobs, batch)
    assert float(found.value.detach()) == pytest.approx(-math.log(0.8 * 0.65 * 0.9) / 3 + 0.0225 / 2)
    assert found.metrics == {"judge/right": 1, "judge/place": pytest.approx(0.075)}
    [slope] = torch.autograd.grad(found.value, logprobs)  # d gap^2 / d log p = 2 gap p
    assert slope[:, 0].tolist() == pytest.approx([-1 / 3 + 0.12, -1 / 3 - 0.0975, -1 / 3, 0])
    one = grouped(["m", "M"])
    gap = float(BothOrders()(logprobs.detach()[:2], one).value) - float(
        BothOrders(0.0)(logprobs.detach()[:2], one).value
    )
    assert gap == pytest.approx(0.0225)
    one.valid[1] = False
    assert float(BothOrders()(logprobs.detach()[:2], one).value) == pytest.approx(-math.log(0.8))
    assert BothOrders.whole_groups, "a pair cut over two passes is none"
    assert BothOrders.ignores_rewards, "what is on record earns the same all over, which is no standstill"


def test_a_judge_is_trained(tmp_path: Path) -> None:
    """A small model learns that answers with a 7 are better, in either order."""
    path = tmp_path / "pairs.jsonl"
    rows = [{"prompt": f"q{k}", "chosen": "7", "rejected": "1"} for k in range(8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge = {"template": "{question}{first}{second}", "names": ["1", "2"]}
    folder = run(
        tmp_path / "run",
        tasks={"source": {"name": "recorded", "path": str(path)}, "eval_size": 1, "eval_share": 0.2},
        method={"name": "S209", "reward": None, "options": {"stage": "judge", "judge": judge, "weight": 0.5}},
        train={"steps": 40, "mini_batches": 1, "epochs": 1, "lr": 1e-2},
        rollout={"group": 2, "max_tokens": 1},
        warmup={"steps": 0},
        evaluate={"every": 0, "samples": 0},
    )
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert steps[-1]["judge/right"] == 1 and abs(steps[-1]["judge/place"]) < 0.05
    assert steps[-1]["loss"] < 0.2 < steps[0]["loss"]


def test_it_acts_in_training(tmp_path: Path) -> None:
    made = catalogue.make("S209", judge=Prefers())
    assert isinstance(made, Method) and isinstance(made.reward, WeightedSum) and isinstance(made.credit, GAE)
    assert made.reward.weights == {"pairs": 1.0, "kl": 0.05} and (made.credit.discount, made.credit.decay) == (1, 0.95)
    pairs: Any = made.reward.inner["pairs"]
    assert isinstance(pairs, AnchoredPairs) and pairs.form == "probability"
    bare = catalogue.make("S209", judge=Prefers(), kl_weight=0.0, form="logit", credit="rloo")
    assert isinstance(bare.reward, AnchoredPairs) and bare.reward.form == "logit" and not isinstance(bare.credit, GAE)
    judge = catalogue.make("S209", stage="judge")
    assert judge.objective == BothOrders(1.0) and judge.rollout == {"name": "pair_orders"}
    folder = run(
        tmp_path / "run",
        method={"name": "S209", "reward": None, "options": {"judge": {"name": HERE}}},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        warmup={"steps": 0},
        evaluate={"every": 0},
    )
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(steps) == 2 and all(0 < row["reward/pairs/preference"] < 1 for row in steps)
    assert all("critic/loss" in row for row in steps)


def test_a_bandit_of_qualities() -> None:
    assert learned("S209", "compared", steps=30, problems=3, lr=3.0, noise=0.1)["worth"] > 0.3
