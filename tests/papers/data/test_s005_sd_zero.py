"""SD-Zero: which tuples are kept, the losses of one, what the teacher reads, and both phases in runs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run

from assay.batch import Batch
from assay.catalogue.claim import claims_made
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.lab.settings import load
from assay.method import make_method
from assay.objectives.second_view import Distilled
from assay.objectives.sft import SFT
from assay.papers.data.s005_sd_zero import LOSS, OfTuples, Revisions
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rollout.reread.prompts import Revision
from assay.select.shown import Shown
from assay.signals.base import Models
from assay.signals.reread.second_view import AveragedView
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")


class Scripted:
    """Answers prompts as told, one reply for each time it is asked; a token is a character."""

    def __init__(self, replies: dict[str, list[str]]):
        self.replies, self.asked = replies, list[str]()

    def encode(self, prompt: Any) -> np.ndarray:
        return np.array([ord(c) for c in str(prompt)], dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.array([*(ord(c) for c in text), *([0] if end else [])], dtype=np.int64)

    def decode(self, tokens: Any) -> str:
        return "".join(chr(t) for t in tokens if t)

    def generate(self, requests: Any) -> list[list[Episode]]:
        out = []
        for r in requests:
            told = r.prompt + self.decode(r.prefix)
            self.asked.append(told)
            out.append([self.episode(told, self.replies[told][j]) for j in range(r.n)])
        return out

    def episode(self, prompt: str, text: str) -> Episode:
        tokens = self.encode_response(text)
        mask = np.ones(len(tokens), dtype=bool)
        return Episode(self.encode(prompt), tokens, mask, np.full(len(tokens), -1.0), text, "eos")


def judge(task: Task, response: str) -> Verdict:
    if response == "?":
        return Verdict.abstain("lost")
    return Verdict.right() if response[:1] == task.reference else Verdict.wrong()


WORDS = {"template": "{question}|{attempt}|{phrase}", "right": "R", "wrong": "W"}


def collected(engine: Scripted, ask: Ask, **options: Any) -> tuple[Revisions, list[Group]]:
    made = build(
        "rollout",
        {"name": "revisions", **WORDS, **options},
        sampling=Sampling(8),
        judge=partial(judge_groups, judge),
        more=None,
        curriculum=None,
    )
    assert isinstance(made, Revisions)
    return made, made.collect([ask], engine, np.random.default_rng(0))


def test_what_a_reviser_reads() -> None:
    words = Revision(**WORDS)
    batch = Batch.from_groups(
        [
            Group(
                Ask(Task("t", "Q"), 3),
                tuple(Scripted({}).episode("Q", text) for text in ("12", "3", "?")),
                (Verdict.right(), Verdict.wrong(), Verdict.abstain("lost")),
            )
        ]
    )
    assert words.prompts(batch) == ["Q|12|R", "Q|3|W", None]
    assert words.begun(batch) == [""] * 3
    assert Revision().prompts(batch) == ["Q", "Q", None]
    assert Revision().begun(batch)[:2] == [
        "12\n\nLet me rephrase the above solution.\n\n",
        "3\n\nWait, this response is not correct, let me start over.\n\n",
    ]
    for bad in (
        {"template": "{question}{attempt}"},
        {"template": "{attempt}{phrase}{x}"},
        {"right": "W", "wrong": "W"},
    ):
        with pytest.raises(UsageError, match="revision"):
            Revision(**{**WORDS, **bad})


def test_the_first_and_the_third_of_four_tuples_are_kept() -> None:
    """(wrong, right), (wrong, wrong), (right, right) and (right, wrong)."""
    told = {"Q|a|W": ["G"], "Q|b|W": ["c"], "Q|G1|R": ["G"], "Q|G2|R": ["d"]}
    engine = Scripted({"Q": ["a", "b", "G1", "G2"], **told})
    rollout, groups = collected(engine, Ask(Task("t", "Q", reference="G"), 4), n=1, generation=0.0)
    assert engine.asked == ["Q", *told]
    kept = [(g.task.id, [e.text for e in g.episodes]) for g in groups if g.derived]
    assert kept == [("t/revise-0", ["G"]), ("t/revise-2", ["G"])]
    assert rollout.metrics()["revisions/kept"] == 2 and rollout.metrics()["derived/asked"] == 4
    weights = OfTuples(0.0)(Batch.from_groups(groups))
    assert weights.tolist() == [0, 0, 0, 0, 1, 1], "attempts are not learned from"
    # What could not be judged is not revised; what comes after it is.
    lost = Scripted({"Q": ["?", "a"], "Q|a|W": ["G"]})
    _, groups = collected(lost, Ask(Task("t", "Q", reference="G"), 2), n=1)
    assert [g.task.id for g in groups] == ["t", "t/revise-1"] and lost.asked == ["Q", "Q|a|W"]
    assert OfTuples()(Batch.from_groups(groups)).tolist() == [0, 0, 1, 1], "losses of equal weight unless told"


def test_both_losses_of_a_tuple() -> None:
    """Three revisions, two of them right: two samples of each loss, summed over their tokens."""
    engine = Scripted({"Q": ["ab"], "Q|ab|W": ["G", "x", "G"]})
    task = Task("t", "Q", reference="G", solution="s", hints=("h",), meta={"m": 1})
    _, groups = collected(engine, Ask(task, 1), n=3, generation=0.5)
    group = groups[1]
    assert group.task.parent == "t" and group.task.solution is None and group.task.hints == ()
    assert [e.meta[LOSS] for e in group.episodes] == ["revision"] * 2 + ["generation"] * 2
    assert [e.text for e in group.episodes] == ["G", "G", "ab\n\nW\n\nG", "ab\n\nW\n\nG"]
    whole = group.episodes[2]
    assert whole.prompt.tolist() == [ord("Q")] and whole.logprobs is None and whole.mask.all()
    assert len(whole.tokens) == len("ab\n\nW\n\nG") + 1 and len(group.episodes[0].tokens) == 2
    assert group.episodes[0].prompt.tolist() == [ord(c) for c in "Q|ab|W"]
    method = make_method("S005", options={"phase": "revision", "generation": 0.5})
    batch = Batch.from_groups(groups, torch.float64)
    batch.weights = method.select(batch)
    assert batch.weights.tolist() == [0, 1, 1, 0.5, 0.5]
    batch.totals = batch.count()
    loss = method.objective(torch.full(batch.tokens.shape, -2.0, dtype=torch.float64), batch)
    # (2 tokens + 2 + half of 9 + half of 9) times 2, a mean over the four.
    assert loss.value.item() == pytest.approx(6.5)
    cut = Scripted(engine.replies)
    cut.policy = type("P", (), {"context": 9})()  # type: ignore[attr-defined]
    short = collected(cut, Ask(task, 1), n=3, max_tokens=2)[1][1]
    assert len(short.episodes[2].tokens) == 8, "what does not fit is cut"


PLAIN: dict[str, Any] = {"template": None, "right": "R", "wrong": "W"}


def test_a_revision_goes_on() -> None:
    """The authors' layout: x, then in the answer y, the phrase and what is learned, empty lines between; both losses
    are on one sequence of tokens, and the teacher of the second phase reads the same beginning."""
    engine = Scripted({"Q": ["ab"], "Qab\n\nW\n\n": ["G", "x", "G"]})
    _, groups = collected(engine, Ask(Task("t", "Q", reference="G"), 1), n=3, **PLAIN)
    revision, _, whole, _ = groups[1].episodes
    assert engine.asked == ["Q", "Qab\n\nW\n\n"] and (revision.text, whole.text) == ("G", "ab\n\nW\n\nG")
    assert np.array_equal(*(np.concatenate([e.prompt, e.tokens]) for e in (revision, whole)))
    assert groups[1].task.prompt == "Q", "a judge is shown the question"
    [view] = make_method("S005", options=PLAIN).needs
    batch = Batch.from_groups([replace(groups[0], ask=Ask(groups[0].task, 1))])
    policy = TabularPolicy(Tree.of([0.0, 1.0]))
    [read] = view.read_under(batch, Models(policy, encode=engine.encode, engine=engine))
    assert read is not None and read.tolist() == revision.prompt.tolist()
    for room, left in ((14, 0.0), (13, 1.0)):  # 1 + 7 + 6
        engine.policy = type("P", (), {"context": room})()  # type: ignore[attr-defined]
        rollout, _ = collected(engine, Ask(Task("t", "Q", reference="G"), 1), n=3, max_tokens=6, **PLAIN)
        assert rollout.metrics()["derived/left_out"] == left


def test_the_teachers_tokens() -> None:
    """Student (.5, .3, .2) and teacher (.1, .7, .2): of the teacher's first two the student has (.6, .4), he himself
    (7/9, 2/9); .6 log(.6 * 9/7) + .4 log(.4 * 9/2)."""
    policy = TabularPolicy(Tree.of([[0.0] * 3, [0.0] * 3]))
    with torch.no_grad():
        for view, p in enumerate(((0.5, 0.3, 0.2), (0.1, 0.7, 0.2))):
            policy.logits[policy.tree.node([view]), :3] = torch.tensor(p, dtype=torch.float64).log()
    [episode] = policy.episodes(torch.tensor([[0]]), torch.ones(1, dtype=torch.int64), prompts=[np.array([0])])
    batch = Batch.from_groups([Group(Ask(Task("t", "0"), 1), (episode,), (Verdict.wrong(),))], torch.float64)
    method = make_method("S005", options={**WORDS, "k": 2})
    [second] = method.needs
    batch.signals[second.name] = second(batch, Models(policy, policy.twin(), encode=lambda p: np.array([1])))
    assert batch.signals["candidates"].tolist() == [[[1, 2]]]
    method.value(batch)
    output = policy.forward(batch, {"candidate_logprobs"})
    batch.live = output.live
    assert method.objective(output.logprobs, batch).value.item() == pytest.approx(0.079408, abs=1e-6)


def views() -> tuple[TabularPolicy, Models, Batch]:
    """Answers 0 and 1 after the prompt 0; told that one of them was wrong (1) or right (2), the policy is sure."""
    policy = TabularPolicy(Tree.of([[0.0, 1.0]] * 3))
    with torch.no_grad():
        for view, p in enumerate((0.5, 0.1, 0.8)):
            policy.logits[policy.tree.node([view]), :2] = torch.tensor([p, 1 - p], dtype=torch.float64).log()
    one = torch.ones(2, dtype=torch.int64)
    episodes = policy.episodes(torch.tensor([[0], [1]]), one, prompts=[np.array([0])] * 2)
    batch = Batch.from_groups(
        [Group(Ask(Task("t", "0"), 2), tuple(episodes), (Verdict.wrong(), Verdict.right()))], torch.float64
    )
    return policy, Models(policy, policy.twin(), encode=lambda p: np.array([1 if "W" in p else 2])), batch


def test_right_and_wrong_responses_are_distilled() -> None:
    """Reverse divergences of (.5, .5) from (.1, .9) and (.8, .2), their mean over the two tokens, by hand."""
    policy, models, batch = views()
    method = make_method("S005", options={**WORDS, "k": 2})
    [view] = method.needs
    batch.signals[view.name] = view(batch, models)
    method.value(batch)
    assert batch.weights.tolist() == [1, 1]
    output = policy.forward(batch, {"candidate_logprobs"})
    batch.live = output.live
    loss = method.objective(output.logprobs, batch)
    assert loss.value.item() == pytest.approx((0.510826 + 0.223144) / 2, abs=1e-6)
    assert loss.metrics["reread/divergence"] == pytest.approx(0.366985, abs=1e-6)


def test_the_teacher_reads_the_response_twice() -> None:
    """Its prompt holds the whole response; the tokens it is asked of are the student's, all of them."""
    policy, models, batch = views()
    seen: list[str] = []
    here = replace(models, encode=lambda p: seen.append(p) or np.array([1]))
    read: list[list[int]] = []

    class Noting(TabularPolicy):
        def forward(self, of: Batch, *arguments: Any, **options: Any) -> Any:
            read.extend(e.tokens.tolist() for e in of.episodes)
            return super().forward(of, *arguments, **options)

    here.reference = Noting(policy.tree, policy.logits)
    [view] = make_method("S005", options=WORDS).needs
    view(batch, here)
    assert seen == ["0|0|W", "0|1|R"] and read == [e.tokens.tolist() for e in batch.episodes]


def test_the_teacher_is_frozen_or_copied() -> None:
    policy, models, batch = views()
    [frozen] = make_method("S005", options=WORDS).needs
    [copied] = make_method("S005", options={**WORDS, "every": 3}).needs
    assert frozen.teacher == "initial" and frozen.models == {"reference"}
    assert isinstance(copied, AveragedView) and (copied.rate, copied.every) == (1.0, 3)
    copied.start(models)
    before = frozen(batch, models).clone()
    with torch.no_grad():
        policy.logits += 1.5 * torch.randn(policy.logits.shape, generator=torch.Generator().manual_seed(0))
    for step in range(1, 4):
        copied.learn(batch, models)
        now = copied(batch, models).clone()
        chosen = frozen(batch, models)
        assert torch.allclose(now.sort(-1).values, before.sort(-1).values) is (step < 3)
        assert torch.allclose(chosen.sort(-1).values, before.sort(-1).values), "it keeps the first weights"


def test_defaults() -> None:
    second, first = make_method("S005"), make_method("S005", options={"phase": "revision"})
    assert isinstance(second.objective, Distilled) and isinstance(second.select, Shown)
    assert (second.objective.alpha, second.objective.view.k, second.objective.weight_cap) == (1.0, 64, None)
    assert second.objective.view.tokens == "teachers" and second.objective.rest == "renormalise"
    assert first.objective == SFT("sequence_sum") and first.rollout["n"] == 3 and first.rollout["generation"] == 1.0
    with pytest.raises(UsageError, match="S005"):
        make_method("S005", options={"phase": "third"})
    with pytest.raises(UsageError, match="generation"):
        Revisions(Sampling(4), list, generation=-1.0)
    assert Revisions(Sampling(4), list).generation == OfTuples().generation == 1.0
    assert TabularEngine(views()[0]).encode("0").tolist() == [0]


@pytest.mark.slow
def test_in_the_lab_revisions_teach_to_heed_remarks() -> None:
    claim = next(c for c in claims_made()["S005"] if c.label == "mechanism")
    found = load(claim.setting, {**claim.options, "steps": 20, "lr": 0.3}).run(claim.arms["revision"], 0, Path())
    assert found["trust"] > 0.1 and found["rollouts"] == 20 * 4 * 8
    assert learned("S005", "sd-zero", steps=3, lr=30.0)["trust"] == 3.0


def test_both_phases_train(tmp_path: Path) -> None:
    """The second run starts from the first one's weights, on a model whose sums are often right."""
    small: dict[str, dict[str, Any]] = {
        "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 120}},
        "rollout": {"prompts": 4, "group": 3, "max_tokens": 3},
        "train": {"steps": 2, "lr": 1e-2, "mini_batches": 1, "epochs": 1},
        "tasks": {"eval_size": 2},
        "evaluate": {"samples": 1},
        "warmup": {"steps": 40, "batch": 16, "lr": 1e-2},
    }
    words = {"template": "{question}{attempt}{phrase}=", "right": "+", "wrong": "-"}
    method = {"name": "S005", "reward": "verdict", "options": {**words, "phase": "revision"}}
    first = run(tmp_path / "first", **small, method=method)
    rows = [row for row in metrics(first) if "revisions/kept" in row]
    assert sum(row["revisions/kept"] for row in rows) > 0 and all(row["loss"] > 0 for row in rows)
    weights = sorted((first / "checkpoints").iterdir())[-1] / "policy"
    second = run(
        tmp_path / "second",
        **{**small, "model": {"source": str(weights)}, "warmup": {"steps": 0}},
        method={"name": "S005", "reward": "verdict", "options": {**words, "k": 8}},
    )
    rows = [row for row in metrics(second) if "reread/divergence" in row]
    assert len(rows) == 2 and all(row["grad_norm"] > 0 for row in rows)
