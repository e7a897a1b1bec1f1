"""Tango: turns, worked numbers of both sides, and a run of two models that is killed between two of its steps."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import assert_same, child, metrics, recipe

import assay
from assay.batch import Batch
from assay.credit.scaled.class_balanced import ClassBalanced
from assay.errors import RunError, UsageError
from assay.lab.settings import load
from assay.learning.signals import compute_signals
from assay.method import Method, make_method
from assay.method.partner import Partner, Turns
from assay.papers.process.s066_tango import tango
from assay.policies.tabular import TabularPolicy, Tree
from assay.records.checkpoints import last_checkpoint
from assay.rewards.process.partner_steps import PartnerSteps
from assay.scale.ranks import Ranks
from assay.signals.base import Models
from assay.signals.block_steps import BlockSteps
from assay.signals.partner_marks import PartnerMarks
from assay.signals.steps import Steps
from assay.tasks.solutions.verifications import Verifications
from assay.types import Ask, Episode, Group, Span, Task, Verdict
from assay.verify.verification import Reading, VerificationVerdict, form_score, read

pytestmark = pytest.mark.usefixtures("one_thread")

NONE = np.zeros(0, dtype=np.int64)


def test_whose_turn_it_is() -> None:
    """Two of the partner's, then three and one: 2 + 3 + 1 + 3 + 1."""
    turns = Turns(2, 3, 1)
    assert "".join("PO"[not turns.partners(k)] for k in range(11)) == "PPOOOPOOOPO"
    assert [turns.own(n) for n in range(12)] == [sum(not turns.partners(k) for k in range(n)) for n in range(12)]
    assert Turns(40, 3, 1).own(440) == 300 and Turns(0, 1, 2).own(7) == 3
    for bad in ({"warm_up": -1}, {"every": 0}, {"updates": 0}):
        with pytest.raises(UsageError, match="turns of a partner"):
            Turns(**bad)
    for bad in ({"group": 0}, {"per_prompt": 0}):
        with pytest.raises(UsageError, match="partner needs group"):
            Partner(Method(), lambda groups, decode: [], VerificationVerdict(), **bad)  # type: ignore[arg-type]


STEPS = "<step>fine \\boxed{CORRECT}</step>\n<step>no \\boxed{CORRECT} \\box{incorrect}. </step>"
FINAL = "<final_verification>\\boxed{INCORRECT}</final_verification>"
GOOD = f"<step_verification>\n{STEPS}</step_verification>\n{FINAL}\n"


def test_how_a_reply_is_read() -> None:
    """By the patterns of the authors' code: a verdict is what ends a block, and the frame is the whole reply."""
    assert read(GOOD) == Reading((True, False), False, True, True)
    assert read("so " + GOOD) == read(GOOD + "so") == Reading((True, False), False, False, True)
    assert read(GOOD.replace("\n<step>no", "\nand\n<step>no")) == Reading((True, False), False, True, False)
    assert read("\\boxed{CORRECT}") == Reading((), None, False, True)
    assert read(FINAL.replace("IN", "")) == Reading((), True, False, True)
    assert read(FINAL.replace("\\", "so \\")).final is None
    silent = "<step_verification><step>\\boxed{CORRECT} hm</step></step_verification> <final_verification>"
    assert read(silent) == Reading((None,), None, False, True)
    assert read(silent + "</final_verification>") == Reading((None,), None, True, True)
    assert read(silent[:-20] + "also" + FINAL).framed is False
    assert read("<step_verification>" + STEPS + FINAL) == Reading((), False, False, False)
    assert read("TFT", "letters") == Reading((True, False), True, True, True)
    assert read("T F9\nF", "letters") == Reading((True, False), False, True, False)
    assert read("", "letters") == Reading((), None, False, True)


def test_what_a_verification_earns() -> None:
    """1 for the final verdict, 0.8 for the form: 1.16 for the right one with two of three steps judged."""

    def earned(reply: str, right: bool, steps: int) -> float:
        verdict = VerificationVerdict()(Task("t", "", {"right": right, "steps": steps}), reply)
        return float(verdict.score + 0.8 * (verdict.parts["form"] or 0))

    assert earned(GOOD, False, 2) == pytest.approx(1.8)
    assert earned(GOOD, True, 2) == pytest.approx(0.8)
    assert earned(GOOD, False, 3) == pytest.approx(1.16)
    assert earned("x" + GOOD, False, 2) == pytest.approx(1.0)
    between = GOOD.replace("\n<step>", "x\n<step>")
    assert earned(between, False, 2) == pytest.approx(1.48)
    assert earned(between, False, 3) == pytest.approx(1.0)
    assert earned("\\boxed{INCORRECT}", False, 2) == 0
    assert earned(GOOD.replace("\\boxed{INCORRECT}", ""), False, 2) == 0
    # Blocks that say nothing are none of those that are counted.
    assert earned(GOOD.replace("<step>no", "<step>hm</step><step>no"), False, 2) == pytest.approx(1.8)
    # A solution without steps is not held to a number of them.
    assert earned(GOOD, False, 0) == pytest.approx(1.8)
    assert earned(GOOD.replace(STEPS, ""), False, 0) == pytest.approx(1.16)
    assert form_score(Reading((), True, True, True), 2) == pytest.approx(0.2)
    assert form_score(Reading((True, None), True, True, True), 2) == pytest.approx(0.2)
    assert form_score(Reading((), None, True, False), 2) == 0
    abstained = VerificationVerdict()(Task("t", "", "7"), GOOD)
    assert abstained.passed is None
    assert VerificationVerdict()(Task("t", "", {"steps": 2}), GOOD).passed is None
    silent = VerificationVerdict()(Task("t", "", {"right": False, "steps": 1}), "hm")
    assert (silent.score, silent.passed, silent.parts) == (0, False, {"form": 0})
    with pytest.raises(UsageError, match="tagged"):
        VerificationVerdict("other")  # type: ignore[arg-type]


def episode(length: int, *ends: int, text: str = "") -> Episode:
    spans = tuple(Span("step", a, b) for a, b in zip((0, *ends), ends, strict=False))
    return Episode(NONE, np.arange(length), np.ones(length, dtype=bool), np.zeros(length), text, "eos", spans=spans)


def group_of(episodes: Sequence[Episode], right: Sequence[bool], **task: Any) -> Group:
    verdicts = [Verdict(float(r), r) for r in right]
    return Group(Ask(Task("t", "q", **task), len(right)), tuple(episodes)).judged(verdicts)


class Verifier:
    """An engine whose replies are given, one after the other."""

    def __init__(self, *replies: str):
        self.replies, self.asked = list(replies), list[Any]()

    def generate(self, requests: Sequence[Any]) -> list[list[Episode]]:
        self.asked += requests
        return [[Episode(NONE, NONE, NONE > 0, None, self.replies.pop(0), "eos")] for _ in requests]


def marked(batch: Batch, *replies: str, **options: Any) -> tuple[Batch, Method, Verifier]:
    method, engine = tango(form="letters", warm_up=0, **options), Verifier(*replies)
    models = Models(TabularPolicy(Tree.uniform(2, 1)), partner=engine)
    compute_signals(batch, [n for n in method.needs if not isinstance(n, str)], models)
    return method.worth(batch), method, engine


def test_the_worked_example() -> None:
    """o = 0, 1; verdicts (1, 1, -1) and (1, 1); steps of one token, one token after the last."""
    for alpha, first, second, after in (
        (0.1, [-0.771423, -0.790712, -0.810002], [0.771423, 0.703909], 0.636395),
        (0.5, [-1.028691, -1.125139, -1.221587], [1.028691, 0.691122], 0.353553),
    ):
        batch = Batch.from_groups([group_of([episode(4, 1, 2, 3), episode(3, 1, 2)], [False, True])], torch.float64)
        batch, method, engine = marked(batch, "TTFT", "TTT", weight=alpha)
        assert {(r.n, r.sampling.max_tokens) for r in engine.asked} == {(1, 4096)}
        assert len({r.seed for r in engine.asked}) == 2
        assert batch.reward_terms["process"].tolist() == pytest.approx([1 / 3, 1])
        assert batch.token_rewards is not None
        assert batch.token_rewards[0].tolist() == pytest.approx([1 / 3, 1 / 3, -1 / 3, 0])
        assert batch.token_rewards[1].tolist() == pytest.approx([0.5, 0.5, 0, 0])
        batch.weights = method.select(batch)
        found = method.credit(batch)
        assert found[0].tolist() == pytest.approx([*first, -after], abs=3e-5)
        assert found[1].tolist() == pytest.approx([*second, after, 0], abs=3e-5)


def test_marks_that_do_not_fit_leave_the_outcome() -> None:
    """One step too few, or none at all: (1 - a) A of the outcome; where no response has marks, A itself."""
    episodes = [episode(3, 1, 2), episode(2, 1, 2), Episode(NONE, NONE, NONE > 0, None, "", "eos")]
    batch = Batch.from_groups([group_of(episodes, [True, False, False])], torch.float64)
    batch, method, engine = marked(batch, "TT", "FTT")
    assert len(engine.asked) == 2 and batch.reward_terms["scored"].tolist() == [0, 1, 0]
    batch.weights = method.select(batch)
    plain = make_method().credit(batch)
    found = method.credit(batch)
    assert torch.allclose(found[0], 0.9 * plain[0]) and not torch.allclose(found[1], 0.9 * plain[1])
    batch = Batch.from_groups([group_of(episodes[:2], [True, False])], torch.float64)
    batch, method, _ = marked(batch, "T", "T")
    batch.weights = method.select(batch)
    assert torch.allclose(method.credit(batch), make_method().credit(batch))
    with pytest.raises(RunError, match="has none"):
        PartnerMarks()(batch, Models(TabularPolicy(Tree.uniform(2, 1))))


def test_the_mix_decays_over_the_generators_updates() -> None:
    credit: Any = tango().credit
    credit.planned(Turns(40, 3, 1).own(440))
    found = []
    for n in (0, 75, 150, 300):
        credit.load_state_dict({"done": n})
        found.append(credit.alpha)
    assert found == pytest.approx([0.1, 0.0316228, 0.01, 0.001], rel=1e-5)
    assert tango(weight=0.0).credit.final is None  # type: ignore[attr-defined]


def test_class_weights() -> None:
    """12 right and 4 wrong: .8453 and 1.4641, mean 1; from (2, 14), (6, 10) leaves (2.8, 13.2)."""

    def coefficients(credit: ClassBalanced, right: int, wrong: int) -> tuple[float, float]:
        label = [True] * right + [False] * wrong
        groups = [group_of([episode(1)], [True], reference={"right": r}) for r in label]
        batch = Batch.from_groups(groups, torch.float64)
        c = credit.coefficients(torch.tensor(label), batch)
        assert c.mean().item() == pytest.approx(1)
        return c[0].item(), c[-1].item()

    assert coefficients(ClassBalanced(), 12, 4) == pytest.approx((0.845300, 1.464101), abs=1e-5)
    credit = ClassBalanced()
    coefficients(credit, 2, 14)
    other = ClassBalanced()
    other.load_state_dict(credit.state_dict())
    assert coefficients(other, 6, 10) == pytest.approx((1.508628, 0.694823), abs=1e-5)
    assert other.state_dict()["counts"] == pytest.approx([13.2, 2.8])
    assert ClassBalanced().state_dict() == {"counts": None}
    # They multiply what the credit inside says, sample by sample.
    members = [episode(1), episode(1)]
    groups = [group_of(members, [True, False], reference={"right": r}) for r in (True, False, False, False)]
    batch = Batch.from_groups(groups, torch.float64)
    batch.rewards = torch.tensor([1.0, 0.0] * 4, dtype=torch.float64)
    found, plain = ClassBalanced()(batch), make_method().credit(batch)
    c = ClassBalanced().coefficients(torch.tensor([True] * 2 + [False] * 6), batch)
    assert torch.allclose(found, plain * c[:, None]) and c[0].item() == pytest.approx(3**0.5 * c[2].item(), rel=1e-5)
    assert ClassBalanced("gae").level == "token" and ClassBalanced().group_relative
    batch.tasks = [Task("t", "", "7")] * 8
    with pytest.raises(RunError, match="does not say"):
        ClassBalanced()(batch)
    with pytest.raises(UsageError, match="decay"):
        ClassBalanced(decay=1.0)
    # Those that do not count are not counted; a part is known by its options, not by what it has counted.
    some = Batch.from_groups(groups, torch.float64)
    some.weights[2:6] = 0
    fresh, last = ClassBalanced(decay=0.0), ClassBalanced(decay=0.0)
    assert fresh.coefficients(torch.tensor([True] * 2 + [False] * 6), some).tolist() == pytest.approx([1] * 8)
    assert fresh.state_dict() == {"counts": [2, 2]} and fresh == last and repr(fresh) == repr(last)
    with pytest.raises(TypeError):
        ClassBalanced(_counts=(1.0, 1.0))  # type: ignore[call-arg]
    some.weights[:] = 0
    assert last.coefficients(torch.ones(8, dtype=torch.bool), some).tolist() == [1] * 8


def characters(tokens: Sequence[int]) -> str:
    return "".join(map(chr, tokens))


def test_steps_are_the_blocks_and_nothing_else() -> None:
    text = "so <step>a</step> and\n<step>bc</step>. 7<step>open"
    spans = BlockSteps().spans([ord(c) for c in text], characters)
    assert [text[s.start : s.end] for s in spans] == ["<step>a</step>", "<step>bc</step>"]
    assert BlockSteps().spans([ord(c) for c in "none"], characters) == ()
    pieces = ["x<st", "ep>a</step", ">b<step>", "c</step>"]
    two = BlockSteps().spans([0, 1, 2, 3], lambda tokens: "".join(pieces[t] for t in tokens))
    assert [(s.start, s.end) for s in two] == [(0, 3), (3, 4)]


def test_what_the_verifier_is_asked() -> None:
    marks = PartnerMarks(Steps("newline"), Verifications("{question}|{steps}|{response}|{count}"))
    e = Episode(NONE, np.array([ord(c) for c in "a\nb"]), np.ones(3, dtype=bool), None, "a\nb", "eos")
    none = Episode(NONE, NONE, NONE > 0, None, "", "eos")
    group = Group(Ask(Task("t", "q"), 3), (e, e, none)).judged([Verdict.right(), Verdict.abstain("x"), Verdict.wrong()])
    first, last = marks.tasks([group], characters)
    assert first.prompt == "q|Step 1: a\nStep 2: b|a\nb|2" and first.reference == {"right": True, "steps": 2}
    assert (last.prompt, last.reference) == ("q|||0", {"right": False, "steps": 0})
    assert (first.id, last.id, first.kind) == ("t/verify-0", "t/verify-2", "verification")
    for bad in ("{question}", "{steps} {other}", "{steps} {"):
        with pytest.raises(UsageError, match="template"):
            Verifications(bad)


def test_the_verifier_sees_the_answer() -> None:
    """Blocks are its steps, and what stands after them is the answer that it is to judge."""
    text = "<think><step>2 and 2</step><step>make 4</step></think><answer>\\boxed{5}</answer>"
    e = Episode(
        NONE, np.array([ord(c) for c in text]), np.ones(len(text), dtype=bool), np.zeros(len(text)), text, "eos"
    )
    partner: Any = tango().partner
    [task] = partner.tasks([group_of([e], [False])], characters)
    assert text in task.prompt and "2 steps" in task.prompt and task.reference == {"right": False, "steps": 2}
    assert all(tag in task.prompt for tag in ("<step_verification>", "</final_verification>", "\\boxed{INCORRECT}"))
    # So it does when it marks the steps of the generator's turn.
    engine = Verifier(GOOD)
    batch = Batch.from_groups([group_of([e], [False])], torch.float64)
    models = Models(TabularPolicy(Tree.uniform(2, 1)), partner=engine)
    models.policy.decode = characters  # type: ignore[attr-defined]
    marks = tango().reward.marks(batch, models)[0]  # type: ignore[attr-defined]
    assert engine.asked[0].prompt == task.prompt
    assert [k for k, m in enumerate(marks.tolist()) if m] == [text.index("</step>") + 6, text.rindex("</step>") + 6]
    assert marks.sum() == 0 and marks.max() == 1


def test_parts_and_options() -> None:
    method = tango(verifications=4, every=2, verifier={"source": "nano"}, verifier_lr=0.1, balanced=False, decay=0.5)
    partner: Any = method.partner
    assert partner.turns == Turns(40, 2, 1) and (partner.group, partner.per_prompt) == (4, 1)
    assert partner.model == {"source": "nano"} and partner.lr == 0.1 and partner.max_tokens == 4096
    assert type(partner.method.credit).__name__ == "GRPO"
    assert partner.method.reward.weights == {"verdict": 1.0, "part": 0.8}
    assert tango(decay=0.5).partner.method.credit == ClassBalanced(decay=0.5)  # type: ignore[union-attr]
    usual: Any = tango().partner
    assert (usual.turns, usual.group, usual.method.credit) == (Turns(40, 3, 1), 5, ClassBalanced(decay=0.8))
    assert tango(weight=1e-3).credit.final is None and PartnerMarks().max_tokens == 2048  # type: ignore[attr-defined]
    assert (method.objective.kl_weight, method.objective.entropy_weight) == (1e-3, 1e-3)  # type: ignore[attr-defined]
    assert isinstance(method.reward, PartnerSteps) and method.reward.marks == PartnerMarks(
        BlockSteps(), max_tokens=4096
    )
    credit: Any = method.credit
    assert (credit.weight, credit.final, credit.place, credit.convex, credit.within) == (
        0.1, 1e-3, "suffix_sum", True, "group",
    )  # fmt: skip


ALPHABET = "0123456789+=\n|TF"
OPTIONS = {
    "form": "letters",
    "template": "{question}{response}|",
    "steps": {"by": "newline"},
    "warm_up": 1,
    "verifications": 3,
    "verifier_tokens": 3,
    "verifier_lr": 2e-3,
}


def sections(folder: Path, steps: int = 6, **options: Any) -> dict[str, Any]:
    """A step of the verifier's, three of the generator's, one of the verifier's, one of the generator's."""
    made = recipe(
        folder,
        method={"name": "S066", "options": {**OPTIONS, **options}, "reward": None},
        tasks={"verify": f"{Path(__file__)}:even"},
        train={"steps": steps, "epochs": 1, "schedule": "constant"},
        evaluate={"every": 0, "samples": 1},
        warmup={"steps": 2, "batch": 4},
        run={"checkpoint_every": 2},
    )
    made["model"]["nano"]["alphabet"] = ALPHABET
    return made


def even(task: Task, response: str) -> bool:
    return sum(map(ord, response)) % 2 == 0


def killed(folder: str, step: int) -> None:
    """In a child: a run that is killed as soon as the checkpoint of a step is there."""
    from assay.training import state

    save = state.State.save

    def once(self: Any) -> None:
        save(self)
        if self.stage == "rl" and self.step == step:
            os.kill(os.getpid(), signal.SIGKILL)

    state.State.save = once  # type: ignore[method-assign]
    assay.train(sections(Path(folder)), quiet=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tango") / "run"
    assay.train(sections(folder), quiet=True)
    return folder


def second(run: Path) -> dict[str, torch.Tensor]:
    """Weights of the verifier and of its optimiser, in the last checkpoint."""
    from safetensors.torch import load_file

    folder = last_checkpoint(run)[2]
    state = torch.load(folder / "trainer.pt", weights_only=True)
    found = {f"{i}/{k}": v for i, x in state["partner"]["optimizer"]["state"].items() for k, v in x.items()}
    counts = state["partner_method"]["credit"]["counts"]
    return found | load_file(folder / "partner" / "model.safetensors") | {"counts": torch.tensor(counts)}


@pytest.mark.slow
def test_killed_in_the_middle_of_a_cycle(whole: Path, tmp_path: Path) -> None:
    """Killed after the first of three generator steps and resumed: both models, optimisers and counts, bit for bit."""
    folder = tmp_path / "run"
    assert child(killed, str(folder), 2) == -signal.SIGKILL
    assert last_checkpoint(folder)[1] == 2
    assay.train(resume=folder, quiet=True)
    assert_same(whole, folder)
    a, b = second(whole), second(folder)
    assert a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def test_both_learn_in_their_turns_and_not_in_each_others(whole: Path) -> None:
    rows = [row for row in metrics(whole) if row["stage"] == "rl"]
    turns = ["partner/loss" in row for row in rows]
    assert turns == [True, False, False, False, True, False]
    for row, partners in zip(rows, turns, strict=True):
        assert ("loss" in row) is not partners and ("pass_rate" in row) is not partners
    assert {"partner/pass_rate", "partner/reward/mean", "partner/kl/reference", "partner/lr"} <= rows[0].keys()
    assert rows[0]["partner/lr"] == pytest.approx(2e-3) and "kl/reference" in rows[1]
    assert rows[4]["partner/length/max"] <= 3
    # Step 4 is the verifier's: its checkpoint has the generator's weights of step 3, and not the verifier's.
    from safetensors.torch import load_file

    folders = [whole / "checkpoints" / f"rl-{k:06d}" for k in (4, 6)]
    generators, verifiers = (
        [load_file(f / kind / "model.safetensors") for f in folders] for kind in ("policy", "partner")
    )
    for pair in (generators, verifiers):
        assert any(not torch.equal(pair[0][k], pair[1][k]) for k in pair[0])


def test_the_verifier_begins_as_the_base_model(tmp_path: Path) -> None:
    """Its model is the recipe's, drawn from another seed, before any warm-up; a source of its own may be named."""
    from assay.config import load_config
    from assay.policies.causal_lm import CausalLM
    from assay.randomness import Randomness
    from assay.training.partner import Second

    config = load_config(sections(tmp_path))
    partner: Any = tango(**{**OPTIONS, "steps": Steps("newline")}).partner  # type: ignore[arg-type]
    made = Second.load(partner, config, Randomness(0), Ranks())
    base, other = (CausalLM.load(config.model, seed).module.state_dict() for seed in (1, 0))
    own: Any = made.policy.module.state_dict()
    assert all(torch.equal(base[k], own[k]) for k in base) and any(not torch.equal(other[k], own[k]) for k in own)
    CausalLM.load(config.model, 5).save(tmp_path / "saved")
    from dataclasses import replace

    named = Second.load(replace(partner, model={"source": str(tmp_path / "saved")}), config, Randomness(0), Ranks())
    five, found = CausalLM.load(config.model, 5).module.state_dict(), named.policy.module.state_dict()
    assert all(torch.equal(five[k], found[k]) for k in five)
    assert made.reference is not None and made.reference.module is not made.policy.module
    assert made.asks([Ask(Task("t", "q"), 7)]) == [Ask(Task("t", "q"), 1)]
    alone = replace(partner, group=1)
    with pytest.raises(UsageError, match="group of 2 or more"):
        Second.load(alone, config, Randomness(0), Ranks())
    learning = replace(partner, method=make_method("grpo", credit="gae"))
    with pytest.raises(UsageError, match="learners of its own"):
        Second.load(learning, config, Randomness(0), Ranks())


def test_it_is_not_asked_ahead() -> None:
    from assay.config import load_config
    from assay.training.ahead.off_policy import check_overlap

    config = load_config({"overlap": {"staleness": 1}})
    with pytest.raises(UsageError, match="whose turn"):
        check_overlap(config.overlap, tango(), None)


def test_the_setting_runs(tmp_path: Path) -> None:
    setting = load("verifier", {"steps": 5})
    found = setting.run({"name": "grpo", "credit": {"name": "class_balanced"}}, 0, tmp_path)
    assert found["rollouts"] == 5 * 16 * 8 and 0 < found["recall"] < 1
    assert found["balanced"] == pytest.approx((found["recall"] + found["specificity"]) / 2)
