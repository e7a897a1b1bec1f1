"""ThinkTuning: which responses a teacher goes on with, what becomes of them, and how they are learned from."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run
from scripted import Told, judge, operated

from assay.batch import Batch
from assay.engines.asking import filled
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.method import make_method
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.off_policy.advantage_shaped import AdvantageShaped
from assay.papers.data.s223_thinktuning import thinktuning
from assay.rollout.surgery.commented import ASK, Commented, attempt, comment, ends_of
from assay.types import Ask, Episode, Group, Origin, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
SAID = "<opinion>disagree</opinion><reason> a slip </reason>\n<phrase>so 1</phrase>"
END = 7


class Ends(Told):
    """Its texts end with a token of their own."""

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return np.array([*map(ord, text), *([END] if end else [])], dtype=np.int64)

    def decode(self, tokens: Any) -> str:
        return "".join(chr(t) for t in tokens if t != END)

    def generate(self, requests: Any) -> Any:
        found = super().generate(requests)
        ended = lambda e: replace(  # noqa: E731
            e,
            tokens=np.append(e.tokens, END),
            mask=np.append(e.mask, True),
            logprobs=np.append(e.logprobs, np.float32(0)),
        )
        return [[ended(e) for e in row] for row in found]


def commented(reply: Any = SAID, n: int = 8, step: int = 0, **options: Any) -> tuple[Group, Told, Any]:
    """A group of wrong responses "0", of which some go on with what the teacher says, and the teacher."""
    teacher = Told(lambda prompt, i: reply(prompt) if callable(reply) else reply)
    task = Task("t", "Q", "secret")
    limit = {"sampling": Sampling(options.pop("limit", 40))}
    rollout = thinktuning(teacher, template="{question}: {response}", **options).rollout
    group, made = operated(rollout, Ends(lambda prompt, i: "0"), task, n, step, 48, **limit)
    return group, teacher, made


def taught(group: Group) -> list[Episode]:
    return [e for e in group.episodes if e.origins is not None]


@pytest.mark.parametrize(("able", "many"), [(5, 1), (8, 1), (16, 1), (32, 3)])
def test_how_many_are_commented(able: int, many: int) -> None:
    """max(1, floor(0.1 x 5, 8, 16, 32)) = 1, 1, 1, 3."""
    group, _, made = commented(n=able)
    assert len(taught(group)) == many == made.metrics()["surgery/asked"] and len(group.episodes) == able


def test_they_are_drawn_at_random() -> None:
    made = Commented(Sampling(40), judge, teacher=Told(lambda p, i: SAID), first=0.4)
    places = set()
    for seed in range(20):
        [group] = made.collect([Ask(Task("t", "Q"), 5)], Ends(lambda p, i: "0"), np.random.default_rng(seed))
        found = [i for i, e in enumerate(group.episodes) if e.origins is not None]
        assert len(found) == 2
        places |= set(found)
    assert places == {0, 1, 2, 3, 4}


def test_who_is_eligible() -> None:
    def response(tokens: list[int], stop: Any = "eos") -> Episode:
        return Episode(np.zeros(1), np.array(tokens), np.ones(len(tokens), bool), None, "", stop)

    end = np.array([END])
    assert attempt(response([1, 2, END]), end).tolist() == [1, 2]  # type: ignore[union-attr]
    assert attempt(response([1, 2]), end) is None and attempt(response([1, END], "length"), end) is None
    assert attempt(response([1, END, END]), end) is None and attempt(response([END]), end) is None
    assert attempt(response([1, 2]), end[:0]).tolist() == [1, 2]  # type: ignore[union-attr]
    ends = np.array([END, 9])
    assert attempt(response([1, 2, 9]), ends).tolist() == [1, 2]  # type: ignore[union-attr]
    assert attempt(response([1, 9, END]), ends) is None and ends_of(Ends(lambda p, i: "0")).tolist() == [END]


def test_a_response_keeps_the_end_it_had() -> None:
    """Of a model with two end tokens, the one that its tokeniser does not add by itself."""

    class Two(Ends):
        policy = type("P", (), {"stop_ids": [END, 9], "context": 1000})()

        def generate(self, requests: Any) -> Any:
            found = super().generate(requests)
            return [[replace(e, tokens=np.where(e.tokens == END, 9, e.tokens)) for e in row] for row in found]

    rollout = thinktuning(Told(lambda p, i: SAID), template="{question}: {response}").rollout
    group, _ = operated(rollout, Two(lambda prompt, i: "0"), Task("t", "Q", "secret"), 4)
    [e] = taught(group)
    assert e.tokens[-1] == 9 and END not in e.tokens and len(e.tokens) == 16


def test_what_the_teacher_sees() -> None:
    _, teacher, _ = commented()
    assert teacher.prompts == ["Q: 0"] and teacher.asked[0].sampling == Sampling(512, 0.0)
    assert commented(max_tokens=9)[1].asked[0].sampling.max_tokens == 9


def test_what_the_teacher_is_shown() -> None:
    """Examples of a reply: right and wrong attempts, each gone on with in the first person to an answer."""
    shown = filled(ASK, question="What is 1 + 1?", response="It is 3.")
    assert shown.endswith("Question: What is 1 + 1?\nAttempt: It is 3.\n") and "first person" in shown
    examples = shown.split("Question: ")[1:-1]
    opinions = [re.findall(r"<opinion>(.*?)</opinion>", e) for e in examples]
    assert opinions == [["correct"], ["incorrect"], ["incorrect"], ["correct"]]
    none = np.zeros(0, dtype=np.int64)
    for example in examples:
        said = comment(Episode(none, none, none.astype(bool), None, example, "eos"))
        assert said is not None and re.search(r"\b(I|me|My)\b", said) and re.search(r"The\s+answer", said)
        # What the teacher arrives at differs from the attempt just where the opinion is that it is wrong.
        answers = re.findall(r"The\s+answer\s+is ([0-9.]+)\.", example)
        assert len(answers) == 2 and (answers[0] == answers[1]) == ("<opinion>correct" in example)
    assert Commented(Sampling(4), judge, teacher=Told(lambda p, i: "")).template == ASK


def test_malformed_comments() -> None:
    for reply in ("nice", "<reason>a</reason>", "<phrase>b</phrase>", "<reason> </reason><phrase>b</phrase>"):
        group, _, made = commented(reply)
        assert taught(group) == [] and made.metrics()["surgery/mended"] == 0
        batch = Batch.from_groups([group], torch.float64)
        assert thinktuning(Told(lambda p, i: "")).value(batch).advantages.abs().sum() == 0
    none = np.zeros(0, dtype=np.int64)
    assert comment(Episode(none, none, none.astype(bool), None, SAID, "error")) is None


def test_the_augmented_response() -> None:
    group, _, _ = commented()
    [e] = taught(group)
    assert e.text == "0\n\na slip\n\nso 1" and e.tokens[-1] == END and (e.tokens == END).sum() == 1
    assert e.logprobs is None and e.mask.all() and e.origins is not None and (e.origins == Origin.TEACHER).all()
    assert len(e.tokens) == len(e.origins) == len(e.mask) == 16 and e.meta["attempt"] == 1
    assert sorted(v.passed for v in group.verdicts) == [False] * 7 + [True], "judged as it now ends"  # type: ignore[type-var]
    [short] = taught(commented(limit=8)[0])
    assert short.text == "0\n\na sl" and len(short.tokens) == 8 and short.tokens[-1] == END


def test_the_schedule() -> None:
    """From 0.1 to 0.01 over 16 of 48 steps: 0.1, 0.0775, 0.055, 0.01; off from the eighth step on."""
    made = Commented(Sampling(4), judge, teacher=Told(lambda p, i: ""))
    found = [made.share_at(step, 48) for step in (0, 4, 8, 16, 40)]
    assert found == pytest.approx([0.1, 0.0775, 0.055, 0.01, 0.01])
    assert len(commented(step=7)[1].asked) == 1 and len(commented(step=8)[1].asked) == 0
    assert commented(step=20, first=0.02, last=0.01, least=0.0)[1].asked == [], "at least + .01 it is off"
    for schedule, middle in (("cosine", 0.055), ("exponential", 0.0316228), ("constant", 0.1)):
        other = Commented(Sampling(4), judge, teacher=Told(lambda p, i: ""), schedule=schedule)  # type: ignore[arg-type]
        assert other.share_at(8, 48) == pytest.approx(middle, abs=1e-6) and other.share_at(0, 48) == pytest.approx(0.1)
    assert made.share_at(0, 0) == pytest.approx(0.01)


def shaped(p: list[float], advantage: float, **options: Any) -> tuple[list[float], list[float]]:
    """Minus loss over advantage of a teacher's tokens, and its slopes in log p."""
    n = len(p)
    origins = np.full(n, Origin.TEACHER, dtype=np.uint8)
    episode = Episode(np.zeros(1), np.arange(n), np.ones(n, bool), None, "", "eos", origins=origins)
    batch = Batch.from_groups([Group(Ask(Task("t", "Q"), 1), (episode,), (Verdict.right(),))], torch.float64)
    batch.advantages = torch.full((1, n), advantage, dtype=torch.float64)
    now = torch.log(torch.tensor([p], dtype=torch.float64)).requires_grad_()
    batch.signals["policy_logprobs"] = now.detach()
    objective = AdvantageShaped(aggregation="sequence_sum", correction="recompute", dual_clip=3.0, **options)
    weights = objective.weight(now.detach().exp(), batch.advantages)[0].tolist()
    objective(now, batch).value.backward()
    assert now.grad is not None
    return weights, (-now.grad[0] / advantage).tolist()


def test_the_worked_weights() -> None:
    """A = 1.62 and -0.54 at p = .5, .05, .02, .0005; A = 4 at p = .9995."""
    found, slopes = shaped([0.5, 0.05, 0.02, 0.0005], 1.62)
    assert found == pytest.approx([0.999191, 0.991965, 0.980152, 0.552486], abs=1e-6)
    assert slopes == pytest.approx(found)
    found, slopes = shaped([0.5, 0.05, 0.02, 0.0005], -0.54)
    assert found[:3] == pytest.approx([1.000270, 1.002707, 1.006796], abs=1e-6)
    assert slopes == pytest.approx([*found[:3], 1.0]), "the rare one has the clipped ratio"
    assert shaped([0.9995], 4.0)[0] == pytest.approx([0.9999]) and shaped([0.9995], 9.0)[0] == pytest.approx([0.9999])
    found, slopes = shaped([0.012, 0.009], -0.54)
    assert slopes == pytest.approx([0.012 / 0.011865, 1.0]), "rare is below .01"
    assert shaped([0.0005], 0.5)[1] == pytest.approx([0.0005 / 0.000625]), "and only where A < 0"
    assert shaped([0.5], 9.0)[0] == pytest.approx([0.5 / 0.501]) and shaped([0.5], -9.0)[0] == pytest.approx(
        [0.5 / 0.499]
    )
    nothing = AdvantageShaped().weight(torch.zeros(1, 1), torch.tensor([[-1.0]]))
    assert nothing.item() == 0.0, "a probability that is 0 in the floating point has no weight"
    assert shaped([0.02], -4.0)[0] == pytest.approx([0.02 / 0.019])
    assert shaped([0.0001], 1.0, as_released=True)[0] == pytest.approx([1.0001])
    assert shaped([0.5], 1.0, as_released=True)[0] == pytest.approx([0.5 / 0.499])
    assert shaped([0.5], 1.0, shift=0.1, scale=2.0)[0] == pytest.approx([0.5 / 0.55])


def test_without_a_teacher_it_is_grpo() -> None:
    """The schedule is over: nobody is asked, and the loss is the clipped one to recomputed log-probabilities."""
    group, teacher, made = commented(step=20)
    assert teacher.asked == [] and taught(group) == [] and made.metrics()["surgery/sampled"] == 0
    batch = Batch.from_groups([group], torch.float64)
    batch.advantages = torch.where(batch.mask, torch.linspace(-1, 1, 8, dtype=torch.float64)[:, None], 0)
    batch.signals["policy_logprobs"] = batch.logprobs - 0.3
    objective = thinktuning(Told(lambda p, i: "")).objective
    plain = ClippedSurrogate(dual_clip=3.0, correction="recompute")
    assert objective(batch.logprobs, batch).value == plain(batch.logprobs, batch).value != 0
    assert objective.needs == {"policy_logprobs"}


def test_what_it_starts_with() -> None:
    method = make_method("S223", options={"teacher": Told(lambda p, i: "")})
    rollout, objective = method.rollout, method.objective
    assert (rollout["first"], rollout["last"], rollout["least"], rollout["max_tokens"]) == (0.1, 0.01, 0.05, 512)
    assert (objective.shift, objective.scale, objective.dual_clip, objective.as_released) == (1e-3, 4.0, 3.0, False)
    assert rollout["over"] == pytest.approx(1 / 3) and rollout["schedule"] == "linear"
    with pytest.raises(UsageError, match="needs teacher"):
        make_method("S223")
    wrong = {"first": 1.5, "last": 0.2, "over": 0.0, "least": -0.1, "max_tokens": 0, "template": "{question}"}
    for bad in ({name: value} for name, value in wrong.items()):
        with pytest.raises(UsageError, match="commented"):
            Commented(Sampling(4), judge, **{"teacher": Told(lambda p, i: ""), **bad})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the teacher would never be asked"):
        Commented(Sampling(4), judge, teacher=Told(lambda p, i: ""), first=0.06)
    with pytest.raises(UsageError, match="the teacher would never be asked"):
        Commented(Sampling(4), judge, teacher=Told(lambda p, i: ""), first=0.01, least=0.0)
    with pytest.raises(UsageError, match=r"over 1\.5"):
        Commented(Sampling(4), judge, teacher=Told(lambda p, i: ""), over=1.5)
    plain = Commented(Sampling(4), judge, teacher=Told(lambda p, i: ""), first=0.0, last=0.0)
    assert (plain.least, plain.max_tokens) == (0.05, 512)
    for most in ({"first": 1.0, "last": 1.0}, {"first": 0.062}, {"max_tokens": 1}):
        Commented(Sampling(4), judge, **{"teacher": Told(lambda p, i: ""), **most})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="must be an engine"):
        Commented(Sampling(4), judge)
    for bad in ({"shift": 0.0}, {"scale": 0.0}):
        with pytest.raises(UsageError, match="advantage_shaped"):
            AdvantageShaped(**bad)


def test_a_run_is_commented(tmp_path: Path) -> None:
    said = "<reason>1</reason><phrase>+7</phrase>"
    teacher = {"name": "keywords", "replies": [], "otherwise": said}
    options = {"teacher": teacher, "over": 1.0, "least": 0.0, "first": 0.9, "last": 0.5}
    folder = run(
        tmp_path / "run",
        method={"name": "S223", "options": options},
        rollout={"prompts": 4, "group": 3, "max_tokens": 8},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and any(row.get("surgery/mended", 0) > 0 and row["others/tokens"] > 0 for row in rows)


@pytest.mark.slow
def test_the_teachers_habit_is_taken_on() -> None:
    """After 60 steps, of which 9 have the teacher, checks are made nearly always; GRPO hardly ever makes one."""
    ours, theirs = (learned("S223", arm, steps=60, lr=10.0) for arm in ("thinktuning", "grpo"))
    assert ours["checks_before"] < 0.002 and ours["checks"] > 0.5 and theirs["checks"] < 0.1
    assert ours["rollouts"] == theirs["rollouts"] == 960
