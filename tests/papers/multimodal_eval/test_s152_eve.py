"""EVE: programs run on pictures, what is refused, questions known by construction, rewards by hand, two policies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from assay import catalogue
from assay.batch import Batch
from assay.curriculum.challenged import Challenged as ChallengedTasks
from assay.engines.base import Request
from assay.errors import RunError, UsageError
from assay.lab.settings import load
from assay.media import Picture, canvas
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.outcome import challenge
from assay.rewards.outcome.challenge import Boxed, ChallengeReward, boxed_form, likeness, shares
from assay.sandbox import Sandbox, SandboxUnavailable
from assay.signals.base import Models
from assay.signals.challenged import Challenged
from assay.tasks.listed import Listed
from assay.tasks.pictures import edits
from assay.tasks.pictures.challenges import STARTING, Challenges, worth
from assay.tasks.pictures.edits import Edit, Refused, alike, carried_out, in_form, look, question, read_edit, unfit
from assay.tasks.split import TrainStream
from assay.types import Ask, Episode, Group, Message, Task, Verdict, pictures
from assay.verify.kind import KindVerifier
from assay.verify.text.overlap import bleu

pytest.importorskip("PIL", reason="pip install assay[vision]")

CROP = "from PIL import Image\n\ndef edit_image(image, box):\n    return image.crop(box)"
BOXES = ({"box": [0, 0, 16, 16]}, {"box": [0, 0, 16, 8]}, {"box": [0, 0, 8, 16]}, {"box": [4, 4, 32, 32]})


def response(program: str, settings: Any = BOXES, thought: str = "<think>hm</think>") -> str:
    listed = "".join(f"    {setting!r},\n" for setting in settings)
    return f"{thought}\n```python\n{program}\n\nargs_list = [\n{listed}]\n```"


def picture() -> Picture:
    """Red above, blue below, a green square on the left: 32 by 32 pixels."""
    image, pen = canvas(32, 32, (220, 30, 30))
    pen.rectangle((0, 16, 31, 31), (40, 60, 220))
    pen.rectangle((2, 8, 12, 24), (20, 160, 40))
    return Picture.of(image)


def test_what_is_read_of_a_program() -> None:
    edit = read_edit(response(CROP))
    assert edit == Edit(CROP, BOXES) and not edit.rotates
    assert read_edit(f"<think>```python\nx\n```</think>{response(CROP, thought='')}") == edit
    assert read_edit(f"```python\n{edit.written}```") == edit and Edit("image.rotate(3)", BOXES).rotates
    long = CROP + "\n" + "x = 1\n" * 400
    for text, reason in (
        ("no program", "no block of Python"),
        ("```python\nx = 1\n```", "no edit_image and then args_list"),
        (response("def other(image, box): ..."), "no edit_image"),
        (response(long), "longer than 2000"),
        (response(CROP + "\nimage.save('x')"), "it has .save"),
        (response(CROP + "\nimport random"), "it has random"),
        (response(CROP, BOXES[:3]), "has not 4 settings"),
        (response(CROP, (*BOXES[:3], BOXES[0])), "two settings are the same"),
        (response(CROP, (*BOXES[:3], 7)), "a setting is no mapping"),
        (response(CROP, (*BOXES[:3], {3: 4})), "a setting is no mapping"),
        (f"```python\n{CROP}\nargs_list = [f(x)]\n```", "no list of literals"),
        (f"```python\n{CROP}\nargs_list = 'abcd'\n```", "has not 4 settings"),
    ):
        found = read_edit(text)
        assert isinstance(found, Refused) and reason in found.reason and not found.ours, text
    assert isinstance(read_edit(response((CROP + "\n").ljust(2000, "x"))), Edit), "2000 characters are not too long"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (response(CROP), True),
        (response(CROP, thought=""), False),
        (response(CROP, thought="<think>a</think><think>b</think>"), False),
        (response(CROP, thought="<think>"), False),
        ("<think></think>", False),
        (response(CROP + "\n# a\n# b"), True),
        (response(CROP + "\n# a\n# b\n# c"), False),
        (response(CROP + "\n'''a'''\n# b"), False),
    ],
)
def test_form(text: str, form: bool) -> None:
    assert in_form(text) is form


@pytest.fixture(scope="module")
def box() -> None:
    try:
        Sandbox().check()
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def test_programs_are_run_on_the_picture(box: None) -> None:
    made = carried_out(Edit(CROP, BOXES), picture())
    assert not isinstance(made, Refused)
    assert [one.open().size for one in made] == [(16, 16), (16, 8), (8, 16), (28, 28)]
    assert (np.asarray(made[3].open()) == np.asarray(picture().open())[4:, 4:]).all()
    black = "import numpy\nfrom PIL import Image\ndef edit_image(image, n):\n    return Image.new('RGB', (n, 9))"
    sizes = tuple({"n": n} for n in (9, 12, 20, 30))
    for program, settings, reason in (
        ("def edit_image(image, n):\n    raise KeyError(n)", sizes, "it raises KeyError"),
        ("def edit_image(image, n):\n    return 3", sizes, "it raises AttributeError"),
        (black, sizes, "a picture is black by 1.00"),
        ("import os\ndef edit_image(image, n):\n    os._exit(0)", sizes, "it ends early"),
        (CROP, (*BOXES[:3], {"box": [0, 0, 7, 9]}), "a picture has 63 pixels"),
    ):
        found = carried_out(Edit(program, settings), picture())
        assert isinstance(found, Refused) and reason in found.reason and not found.ours, program
    spin = "def edit_image(image, angle):\n    return image.rotate(angle)"
    angles = tuple({"angle": a} for a in (0, 90, 180, 360))
    found = carried_out(Edit(spin, angles), picture())
    assert isinstance(found, Refused) and found.reason == "two pictures look the same", "0 and 360"


@pytest.mark.slow
def test_a_program_that_never_ends_does_not_hang(box: None) -> None:
    loop = "def edit_image(image, n):\n    while True:\n        pass"
    found = carried_out(Edit(loop, tuple({"n": n} for n in range(4))), picture())
    assert isinstance(found, Refused) and "it ends early" in found.reason


def test_results_have_to_look_different() -> None:
    one = picture()
    assert look(one) == look(one) and len(look(one)) == 8 and alike(one, one)
    turned = Picture.of(one.open().rotate(90))
    assert not alike(one, turned) and look(one) != look(turned)
    # The same content: alike in a size that differs by a twentieth at most, and not in another.
    assert alike(one, Picture.of(one.open().resize((31, 31)))) and not alike(
        one, Picture.of(one.open().resize((30, 32)))
    )
    bright = np.full((10, 10, 3), 200, dtype=np.uint8)
    dark = bright.copy()
    dark[:1] = 5
    assert unfit(dark, 0.1, 64, 200) == "" and unfit(dark, 0.09, 64, 200) == "a picture is black by 0.10"
    dark[:1] = 6
    assert unfit(dark, 0.0, 100, 100) == ""
    assert unfit(bright, 1.0, 101, 200) == "a picture has 100 pixels, not 101 to 200" and "99" in unfit(
        bright, 1, 0, 99
    )


def test_three_kinds_of_questions() -> None:
    edit, one = Edit(CROP, BOXES), picture()
    made = tuple(Picture.of(one.open().crop(tuple(setting["box"]))) for setting in BOXES)
    judge, answers = KindVerifier(), Counter[str]()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        task = question("picture", edit, one, made, "q", rng)
        shown = pictures(task.prompt)
        asked = next(i for i, s in enumerate(BOXES) if f"of picture 0 with {s!r}?" in task.question)
        assert shown[0] == one and shown[1 + "ABCD".index(task.reference)] == made[asked] and len(shown) == 5
        answers[task.reference] += 1
        assert judge(task, f"so \\boxed{{{task.reference}}}").passed and task.kind == "choice"
        task = question("setting", edit, one, made, "q", rng)
        shown = pictures(task.prompt)
        lines = dict(re.findall(r"^([A-D])\. (.*)$", task.question, re.MULTILINE))
        assert len(shown) == 2 and shown[1] == made[BOXES.index(eval(lines[task.reference]))]
        task = question("match", edit, one, made, "q", rng)
        lines = dict(re.findall(r"^([A-D])\. (.*)$", task.question, re.MULTILINE))
        assert [BOXES.index(eval(lines[label])) for label in task.reference] == [0, 1, 2, 3] and task.kind == "exact"
        assert judge(task, f"\\boxed{{{task.reference}}}").passed and "BDAC" in task.question
    assert min(answers[label] for label in "ABCD") >= 3
    assert task.question.count("<image>") == 5 and edits.NAME in task.question and task.meta["question"] == "match"


class Saying:
    """An engine whose replies come from a function of the request and a reply's number."""

    def __init__(self, say: Callable[[Request, int], str], window: int = 10**6):
        self.say, self.window, self.asked = say, window, list[Request]()

    def encode(self, prompt: Any) -> np.ndarray:
        return np.zeros(len(str(prompt)), dtype=np.int64)

    encode_response = decode = encode

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        none = np.zeros(0, dtype=np.int64)
        texts = [[self.say(request, k) for k in range(request.n)] for request in requests]
        return [
            [Episode(none, none, none > 0, None, t, "error" if t == "fails" else "eos") for t in row] for row in texts
        ]


POLICY = TabularPolicy(Tree.bandit(2))
SEEN = (Message(role="user", content="<image>?", images=(picture(),)),)


def batch_of(*texts: str) -> Batch:
    one = np.ones(1, dtype=np.int64)
    episodes = tuple(Episode(one, one, one > 0, np.zeros(1, np.float32), text, "eos") for text in texts)
    group = Group(Ask(Task("t", SEEN, kind="none"), len(texts)), episodes, (Verdict.abstain("none"),) * len(texts))
    return Batch.from_groups([group], torch.float64)


def right(share: Callable[[Request], int]) -> Callable[[Request, int], str]:
    """A solver who puts A and B into the box in turn, so that a share of six is right."""

    def say(request: Request, k: int) -> str:
        label = answers[str(request.prompt)]
        return f"\\boxed{{{label if k < share(request) else 'ABCD'[('ABCD'.index(label) + 1) % 4]}}}"

    return say


answers: dict[str, str] = {}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are not run: what they make is cut out here, and the answers of questions are known to the solver."""
    made = tuple(Picture.of(picture().open().crop(tuple(setting["box"]))) for setting in BOXES)

    def run_here(edit: Edit, given: Picture) -> tuple[Picture, ...] | Refused:
        if "ours" in edit.program:
            return Refused("no sandbox", ours=True)
        return Refused("bad") if "bad" in edit.program else made

    def posed(*given: Any) -> Task:
        task = question(*given)
        answers[str(task.prompt)] = task.reference
        return task

    monkeypatch.setattr("assay.signals.challenged.carried_out", run_here)
    monkeypatch.setattr("assay.signals.challenged.question", posed)


def rewarded(signal: Challenged, solver: Any, *texts: str) -> tuple[list[float], list[bool]]:
    batch = batch_of(*texts)
    batch.signals["challenged"] = signal(batch, Models(POLICY, partner=solver))
    reward = ChallengeReward(signal)(batch)
    assert reward.valid is not None
    return reward.values.tolist(), reward.valid.tolist()


@pytest.mark.parametrize(("count", "value"), [(0, 0.6), (1, 0.7333), (3, 1.0), (4, 0.8667), (6, 0.6)])
def test_the_worked_rewards_of_a_challenger(known: None, count: int, value: float) -> None:
    """In form and valid, .6, and .4 times 1 - 2 |acc - 1/2|; of two kinds with 3/6 and 1/6 the mean, .866667."""
    signal = Challenged(Challenges(), ("picture",))
    solver = Saying(right(lambda request: count))
    assert rewarded(signal, solver, response(CROP))[0] == pytest.approx([value], abs=1e-4)
    [request] = solver.asked
    assert (request.n, request.sampling.temperature, request.sampling.max_tokens) == (6, 1.0, 2048)
    both = Saying(right(lambda request: 3 if "Which picture" in str(request.prompt) else 1))
    found = rewarded(Challenged(Challenges()), both, response(CROP), response(CROP, thought=""))
    assert found[0] == pytest.approx([0.866667, 0.666667], abs=1e-6)
    bad = rewarded(signal, solver, response("# bad\n" + CROP), "nothing", response("# ours\n" + CROP))
    assert bad == ([0.2, 0.0, 0.0], [True, True, False])
    assert [worth(x) for x in (0.25, 0.5, 1.0)] == [0.5, 1.0, 0.0]


def test_programs_that_are_alike_earn_less(known: None) -> None:
    """Of five, three are one cluster and two are alone, one of them no program: shares .6, .6, .6, .2, .2."""
    a, b = "one two three four five six", "seven eight nine ten eleven twelve"
    assert shares([a, a + " more", b, a]) == [0.75, 0.75, 0.25, 0.75]
    assert shares([a, b]) == [0.5, 0.5] and shares([]) == [] and shares([a]) == [1.0]
    # The pair is nearest, and on the mean too far from the third: (1 - BLEU) of .3 and .8 are .55 together.
    with pytest.MonkeyPatch.context() as patch:
        near = {("x", "y"): 0.9, ("y", "x"): 0.9, ("x", "z"): 0.7, ("z", "x"): 0.7, ("y", "z"): 0.2, ("z", "y"): 0.2}
        patch.setattr(challenge, "bleu", lambda reference, answer: near[reference, answer])
        assert shares(["x", "y", "z"]) == [2 / 3, 2 / 3, 1 / 3]
        near["x", "y"] = near["y", "x"] = 0.5
        assert shares(["x", "y"]) == [0.5, 0.5], "no nearer than the distance"
    other = "def edit_image(picture, angle):\n    turned = picture.rotate(angle)\n    return turned"
    texts = [response(CROP), response(CROP), response(CROP + " "), response(other), "nothing"]
    assert likeness(texts) == [1, 1, 1, 0, 0]
    assert likeness([response(CROP)] * 2) == [1, 1] and likeness(["nothing"] * 2) == [0, 0]
    assert likeness([response(CROP, BOXES[::-1]), response(CROP), response(other)])[:2] == [1, 1], "settings apart"
    batch = batch_of(*texts)
    signal = Challenged(Challenges(), ("picture",))
    batch.signals["challenged"] = signal(batch, Models(POLICY, partner=Saying(right(lambda request: 3))))
    plain, paid = ChallengeReward(signal)(batch), ChallengeReward(signal, alike=0.3)(batch)
    assert (plain.values - paid.values).tolist() == pytest.approx([0.3, 0.3, 0.3, 0, 0])
    assert paid.terms["alike"].tolist() == [1, 1, 1, 0, 0] and "alike" not in plain.terms
    assert catalogue.make("S152").partner.method.reward.alike == 0.3


def test_clusters_are_scipys() -> None:
    """Average linkage of 40 random texts, cut where some are together and some are not."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefgh"), 12)) for _ in range(40)]
    apart = np.array(
        [[0 if i == j else 1 - bleu(texts[max(i, j)], texts[min(i, j)]) for j in range(40)] for i in range(40)]
    )
    of = fcluster(linkage(squareform(apart), "average"), 0.7, "distance")
    expected = np.bincount(of)[of] / 40
    assert shares(texts, 0.7) == pytest.approx(expected.tolist()) and len(set(expected)) > 1


def test_what_the_solver_cannot_answer(known: None) -> None:
    """A failing engine says nothing of a program; a question that does not fit is one that nobody answers."""
    bank = Challenges()
    signal = Challenged(bank, ("picture",), samples=2, max_tokens=9)
    assert rewarded(signal, Saying(lambda request, k: "fails"), response(CROP)) == ([0.0], [False])
    half = Saying(lambda request, k: right(lambda r: 1)(request, 0) if k else "fails")
    assert rewarded(signal, half, response(CROP))[0] == pytest.approx([0.6]) and half.asked[0].sampling.max_tokens == 9
    small = Saying(right(lambda request: 1), window=10)
    assert rewarded(signal, small, response(CROP))[0] == pytest.approx([0.6]) and not small.asked and not bank.questions
    with pytest.raises(RunError, match="asks the run's other policy"):
        signal(batch_of(response(CROP)), Models(POLICY))
    # Of two kinds one question was lost on the way: how hard the program is stays unknown.
    lost = rewarded(
        Challenged(bank, samples=1, max_tokens=1),
        Saying(
            lambda request, k: "fails" if "Which picture" in str(request.prompt) else right(lambda r: 1)(request, k)
        ),
        response(CROP),
    )
    assert lost == ([0.0], [False])
    for wrong in ({"kinds": ()}, {"samples": 0}, {"max_tokens": 0}):
        with pytest.raises(UsageError, match="it needs kinds"):
            Challenged(bank, **wrong)  # type: ignore[arg-type]
    # What half of its tries get right is an example, and a question.
    rewarded(signal, Saying(right(lambda request: 1)), response(CROP), response(CROP + "\n\n\n", thought=""))
    assert [d for _, d in bank.examples] == [1.0] and len(bank.questions) == 2


def test_examples_are_difficult_and_new() -> None:
    bank = Challenges(kept=2)
    first = Edit(CROP, BOXES)
    assert not bank.show(first, 0.5) and bank.show(first, 0.6) and not bank.show(first, 0.9), "the same again"
    other = Edit("def edit_image(picture, angle):\n    turned = picture.rotate(angle)\n    return turned", BOXES)
    third = Edit(
        "from PIL import ImageOps\nedit_image = lambda x, k: ImageOps.posterize(x.convert('L'), bits=k)", BOXES
    )
    assert bank.show(other, 0.6) and [d for _, d in bank.examples] == [0.6, 0.6]
    assert bank.examples[0][0] == other.written, "of equals the latest first"
    assert bank.show(third, 0.8) and [code for code, _ in bank.examples] == [third.written, other.written]
    loose = Challenges(novelty=1.0)
    assert loose.show(first, 0.6) and loose.show(first, 0.7)
    plain = Challenges()
    assert (plain.kept, plain.novelty, plain.least, plain.seed) == (50, 0.25, 0.5, 0)

    group = Group(Ask(Task("t", SEEN), 1), ())
    asked = [plain.tasks([group], lambda tokens: "")[0] for _ in range(30)]
    assert all(STARTING in task.question and "32x32 pixels" in task.question for task in asked)
    assert asked[0].id == "challenge/1/t" and pictures(asked[0].prompt) == [picture()] and plain.asked == 30
    counts = Counter(bank.task(group.task).question.count("```python\n") for _ in range(60))
    # The line on blocks has one too.
    assert set(counts) == {1, 2} and min(counts.values()) > 15
    with pytest.raises(RunError, match="task u has no picture"):
        bank.task(Task("u", "?"))


def test_questions_are_asked_by_difficulty() -> None:
    tasks = [Task(f"q{i}", SEEN, "A", "choice") for i in range(5)]
    bank = Challenges()
    for task, accuracy in zip(tasks, (0.0, 1 / 6, 0.5, 1.0, 5 / 6), strict=True):
        bank.ask(task, accuracy)
    stream = TrainStream(Listed([Task("s", SEEN, "1")]))
    curriculum = ChallengedTasks(stream, 2, 8, bank, lambda step: step < 2 or step >= 5, 3)
    assert [ask.task.id for ask in curriculum.next(0)] == ["s", "s"] and len(bank.questions) == 3
    first, second = curriculum.next(2), curriculum.next(3)
    assert [(a.task.id, a.n) for a in first] == [("q2", 8), ("q1", 8)] and not bank.questions
    again = ChallengedTasks(stream, 2, 8, Challenges(), lambda step: step < 2, 3)
    again.load_state_dict(curriculum.state_dict())
    assert [a.task.id for a in second] == ["q4", "q2"] and [a.task for a in again.next(4)] == [
        a.task for a in curriculum.next(4)
    ]
    curriculum.next(5)
    assert [ask.task.id for ask in curriculum.next(2)] == ["s", "s"], "where none is set"
    bank.ask(tasks[0], 0.5)
    bank.show(Edit(CROP, BOXES), 0.9)
    copy = Challenges()
    copy.load_state_dict(bank.state_dict())
    assert copy == bank
    assert [t.id for t in replace(bank).taken(9)] == [] and [t.id for t in bank.taken(1)] == ["q0"]
    curriculum.check(tasks)
    with pytest.raises(UsageError, match="task t has no picture to be edited"):
        curriculum.check([Task("t", "?")])
    assert ChallengedTasks(stream, 2, 8).steps == 10 and not ChallengedTasks(stream, 2, 8).challengers(0)


def test_the_worked_rewards_of_a_solver() -> None:
    texts = ["so \\boxed{A}", "\\boxed{A}", "so \\boxed{B}", "A", "<think>x</think> \\boxed{A}"]
    assert [boxed_form(text) for text in texts] == [1.0, 0.5, 1.0, 0.0, 0.5]
    batch = batch_of(*texts, "broken")
    scores = (1, 1, 0, 1, 1)
    batch.verdicts = (*(Verdict(s, s == 1) for s in scores), Verdict.abstain("broken"))  # type: ignore[assignment]
    reward = Boxed()(batch)
    assert reward.values.tolist() == pytest.approx([1.0, 0.9, 0.2, 0.8, 0.9, 0.0])
    assert reward.valid is not None and reward.valid.tolist() == [True] * 5 + [False]
    assert Boxed(0.5, 0.5)(batch).values.tolist()[:2] == [1.0, 0.75] and Boxed() == Boxed(0.2, 0.8)


def test_the_method() -> None:
    made = catalogue.make("S152")
    partner, signal = made.partner, made.partner.method.reward.signal
    assert (partner.group, partner.per_prompt, partner.model, partner.lr, partner.max_tokens) == (
        4,
        1,
        None,
        None,
        None,
    )
    assert [partner.turns.partners(step) for step in (0, 9, 10, 19, 20, 29, 30)] == [1, 1, 0, 0, 1, 1, 0]
    assert (signal.kinds, signal.samples, signal.max_tokens) == (("picture", "setting"), 6, 2048)
    assert made.curriculum["bank"] is signal.bank and made.curriculum["steps"] == 10 and signal.bank.kept == 50
    assert made.objective.kl_weight == partner.method.objective.kl_weight == 0.001 and made.reward == Boxed()
    reward = partner.method.reward
    assert (reward.form, reward.valid, reward.hard) == (0.2, 0.4, 0.4) and reward.needs == {signal}
    options: dict[str, Any] = {
        "kinds": ("match",),
        "samples": 2,
        "answer_tokens": 3,
        "steps": 4,
        "programs": 5,
        "kept": 6,
    }
    more = {"novelty": 0.7, "kl_weight": 0.0, "challenger_tokens": 8, "challenger_lr": 0.9}
    other = catalogue.make("S152", **options, **more, challenger={"source": "x"})
    again = other.partner.method.reward.signal
    assert (again.kinds, again.samples, again.max_tokens, again.bank.kept, again.bank.novelty) == (
        ("match",),
        2,
        3,
        6,
        0.7,
    )
    assert (other.partner.group, other.partner.max_tokens, other.partner.lr) == (5, 8, 0.9)
    assert other.partner.turns.warm_up == other.curriculum["steps"] == 4 and other.partner.model == {"source": "x"}


def test_it_trains_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A challenger's step changes the challenger alone, a solver's the solver alone; what was set is asked."""
    asked: list[str] = []

    def challenged(self: Challenged, batch: Batch, models: Models) -> torch.Tensor:
        assert models.partner is not None and models.partner is not models.engine
        for i, task in enumerate(batch.tasks):
            self.bank.ask(Task(f"set/{len(asked)}/{i}", task.prompt, "A", "choice"), 0.5)
        asked.append(batch.tasks[0].id)
        return torch.rand(len(batch), 3, dtype=batch.rewards.dtype)

    monkeypatch.setattr(Challenged, "__call__", challenged)
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 1600}
    folder = run(
        tmp_path / "run",
        model={"nano": {**nano, "vision": {"hidden": 16, "layers": 1, "pixels": 16}}},
        tasks={"source": {"name": "shapes", "grid": 1, "most": 1, "questions": ["colour"]}, "eval_size": 2},
        method={"name": "S152", "reward": None, "options": {"steps": 1, "programs": 2, "challenger_tokens": 4}},
        warmup={"steps": 0},
        rollout={"prompts": 2, "group": 2, "max_tokens": 4},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
        run={"checkpoint_every": 1, "rollouts_every": 1},
    )
    first, second = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert "partner/reward/hard" in first and "reward/form" not in first and len(asked) == 1
    assert "partner/loss" not in second and "reward/form" in second and asked[0].startswith("challenge/1/")
    states = [folder / "checkpoints" / f"rl-00000{k}" for k in range(3)]

    def weights(place: Path) -> bytes:
        return b"".join(file.read_bytes() for file in sorted(place.glob("*.safetensors")))

    solver = [weights(state) for state in states[1:]]
    challenger = [weights(state / "partner") for state in states[1:]]
    assert solver[0] != solver[1] or second["grad_norm"] == 0
    assert challenger[0] == challenger[1] and challenger[0] != b""


def test_the_setting() -> None:
    setting = load("challenger", {"steps": 80, "lr": 1.0})
    paid, flat = (setting.run({"hard": hard}, 1, Path()) for hard in (0.4, 0.0))
    assert paid["start"] == flat["start"] < paid["near"] and flat["near"] < paid["near"]
    assert flat["valid"] > 0.8 and paid["rollouts"] == flat["rollouts"] == 640
