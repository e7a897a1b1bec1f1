"""CapRL: what a reader makes of captions, shuffles, draws, curation, length, and a run that sees and is measured."""

from __future__ import annotations

import json
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

from assay import catalogue, cli
from assay.batch import Batch
from assay.engines.base import Request
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.lab.settings import load
from assay.media import Picture
from assay.rewards.text.caption_reader import CaptionReader, CaptionReward
from assay.tasks.making.journal import key_of
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.making.task_file import row_of, task_of
from assay.tasks.making.visible import Visible
from assay.tasks.making.written_choices import WrittenChoices, read_choices
from assay.tasks.pictures.captions import Captions, described
from assay.tasks.pictures.shapes import COLOURS, Drawn
from assay.types import Ask, Episode, Group, Task, pictures
from assay.verify.choice.questions import questions_of

ROWS = [
    {"question": "What colour?", "options": ["red", "green", "blue", "yellow"], "answer": "green"},
    {"question": "What shape?", "options": ["circle", "square", "cross", "star"], "answer": "circle"},
    {"question": "How many?", "options": ["one", "two"], "answer": "two"},
]
TASK = Task("t", "Describe.", {"questions": ROWS}, "none")


class Reader(Keywords):
    """Replies by a function of what it is asked; keeps that."""

    def __init__(self, say: Callable[[str], str | None]):
        super().__init__([])
        self.say, self.asked, self.sampling = say, list[str](), list[Any]()

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        out = []
        for request in requests:
            prompt = request.prompt if isinstance(request.prompt, str) else request.prompt[0]["content"]
            seen = not isinstance(request.prompt, str) and "images" in request.prompt[0]
            self.asked.append(("<seen>" if seen else "") + prompt)
            self.sampling.append(request.sampling)
            said = self.say(self.asked[-1])
            one = np.ones(1, dtype=np.int64)
            out.append([Episode(one, one, one > 0, None, said or "", "eos" if said is not None else "error")])
        return out


def options_of(prompt: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-D])\. (\w+)", prompt, re.MULTILINE))


def matching(prompt: str) -> str:
    """The letter of an option that stands in the caption, else no letter."""
    caption = prompt.split('"')[1]
    return next((k for k, v in options_of(prompt).items() if v in caption), "I cannot tell")


def batch(texts: Sequence[str], task: Task = TASK, lengths: Sequence[int] = ()) -> Batch:
    sizes = lengths or [1] * len(texts)
    one = np.ones(1, dtype=np.int64)
    episodes = tuple(
        Episode(one, np.ones(n, dtype=np.int64), np.ones(n, dtype=bool), np.zeros(n), text, "eos")
        for text, n in zip(texts, sizes, strict=True)
    )
    return Batch.from_groups([Group(Ask(task, len(texts)), episodes)], torch.float64)


def test_by_hand() -> None:
    """Three of four, one and all are right: rewards .75, .25, 1, and advantages by the sample's deviation."""
    rows = [{**ROWS[0], "question": f"{k}?"} for k in range(4)]
    right = {"first": "0 1 3", "second": "1", "third": "0 1 2 3"}

    def say(prompt: str) -> str:
        caption, number = prompt.split('"')[1], re.findall(r"^(\d)\?", prompt, re.MULTILINE)[0]
        wanted = "green" if number in right[caption] else "red"
        return next(k for k, v in options_of(prompt).items() if v == wanted)

    reader = Reader(say)
    made = catalogue.make("S007", reader=reader, queries=4)
    made.reward.reader = replace(made.reward.reader, again=False)
    valued = made.value(batch(["first", "second", "third"], replace(TASK, reference={"questions": rows})))
    assert valued.rewards.tolist() == [0.75, 0.25, 1.0] and valued.reward_terms["read"].tolist() == [1, 1, 1]
    expected = [0.218217, -1.091087, 0.872869]
    assert valued.advantages[:, 0].tolist() == pytest.approx(expected, abs=1e-5)
    assert len(reader.asked) == 12 and all(s.temperature == 0.6 and s.max_tokens == 8 for s in reader.sampling)
    assert not any("Describe" in prompt for prompt in reader.asked), "the reader has the caption alone"
    quoted = Reader(lambda prompt: "A")
    CaptionReader(quoted)(TASK, 'a "cat"\nA. red')
    assert '"a \\"cat\\"\\nA. red"' in quoted.asked[0]


def test_options_are_shuffled() -> None:
    question = questions_of(TASK)[0]
    task = question.ordered((2, 1, 3, 0))
    assert task.prompt == "What colour?\nA. blue\nB. green\nC. yellow\nD. red" and task.reference == "B"
    assert question.ordered((1, 0, 2, 3)).reference == "A" and task.kind == "choice"
    assert question.rotated(1).question.splitlines()[1:] == ["A. yellow", "B. red", "C. green", "D. blue"]
    assert [question.rotated(k).reference for k in range(4)] == ["B", "C", "D", "A"]
    assert question.row == ROWS[0]
    reader = CaptionReader(Keywords([]), queries=24)
    draws = [task for i in range(40) for task in reader.draws(questions_of(TASK)[:1], f"caption {i}")]
    letters = Counter(task.reference for task in draws)
    # 240 of 960 each; further off than this once in 15,000 times
    assert set(letters) == set("ABCD") and all(abs(n - 240) < 55 for n in letters.values())
    assert all(task.meta["options"][task.reference] == "green" for task in draws)
    assert reader.draws(questions_of(TASK), "x") == reader.draws(questions_of(TASK), "x")
    assert reader.draws(questions_of(TASK), "x") != reader.draws(questions_of(TASK), "y")
    plain = CaptionReader(Keywords([]), shuffle=False).draws(questions_of(TASK)[:1], "x")
    assert {task.question.splitlines()[1] for task in plain} == {"A. red"} and len(plain) == 8


def test_draws_are_of_all_questions() -> None:
    """Two draws of three questions are the same in a third of 900 captions, and every question is as frequent."""
    reader = CaptionReader(Keywords([]), queries=2)
    pairs = [[t.id for t in reader.draws(questions_of(TASK), f"caption {i}")] for i in range(900)]
    assert 250 < sum(a == b for a, b in pairs) < 350
    assert all(540 < n < 660 for n in Counter(name for pair in pairs for name in pair).values())
    assert len({t.id for t in CaptionReader(Keywords([]), queries=0).draws(questions_of(TASK), "x")}) == 3


def test_what_is_not_said() -> None:
    """The last option, below the others however they are shuffled; who chooses it is wrong, and has chosen."""
    reader = CaptionReader(Reader(lambda p: "E"), cannot="Who knows")
    for task in reader.draws(questions_of(TASK)[:1], "x"):
        assert task.question.endswith("\nE. Who knows") and task.reference in "ABCD"
    found = reader(replace(TASK, reference={"questions": ROWS[:2]}), "x")
    assert found.score == 0 and found.parts["read"] == 1
    plain = CaptionReader(Keywords([]), cannot="").draws(questions_of(TASK)[:1], "x")
    assert all(len(t.meta["options"]) == 4 for t in plain)
    known = replace(TASK, reference={"questions": [{**ROWS[0], "options": [*ROWS[0]["options"], "Who knows"]}]})
    assert all(len(t.meta["options"]) == 5 for t in reader.draws(questions_of(known), "x")), "it has it already"
    assert CaptionReader(Keywords([])).cannot == "The description does not say"


def test_draws_go_round() -> None:
    """Eight draws of three questions: each twice, two of them thrice; none twice before all were asked."""
    turns = CaptionReader(Keywords([]), again=False)
    asked = [t.question.splitlines()[0] for t in turns.draws(questions_of(TASK), "x")]
    assert len(asked) == 8 and sorted(Counter(asked).values()) == [2, 3, 3]
    assert len(set(asked[:3])) == 3 and asked[:3] == asked[3:6]
    first = {CaptionReader(Keywords([]), 1).draws(questions_of(TASK), str(i))[0].id for i in range(20)}
    assert len(first) == 3
    assert len(CaptionReader(Keywords([]), queries=0).draws(questions_of(TASK), "x")) == 3


def test_who_fails() -> None:
    """Of four replies one chooses nothing and one failed: one of three is right; where all failed nothing is known."""
    replies = {"0?": "green", "1?": "red", "2?": "hm", "3?": None}
    rows = [{**ROWS[0], "question": text} for text in replies]
    task = replace(TASK, reference={"questions": rows})
    reader = CaptionReader(Reader(lambda p: replies[next(t for t in replies if t in p)]), queries=4, again=False)
    found = reader(task, "x")
    assert found.score == pytest.approx(1 / 3) and found.passed is False and found.parts["read"] == pytest.approx(2 / 3)
    assert "1 of 3" in found.feedback
    broken = CaptionReader(Reader(lambda p: None))(task, "x")
    assert broken.passed is None and broken.fault == "infrastructure"
    reward = CaptionReward(Reader(lambda p: None if '"broken"' in p else matching(p)))(batch(["broken", "green two"]))
    assert reward.valid is not None and reward.valid.tolist() == [False, True]
    assert CaptionReader(Reader(matching))(TASK, "two green circle").passed is True


def test_a_letter_is_chance() -> None:
    """A reader that always says B is right in 1/4, 1/4 and 1/2, whatever the caption; one that matches, by what is
    named."""
    always = CaptionReader(Reader(lambda p: "B"), queries=3, again=False)
    scores = [always(TASK, f"caption {i}").score for i in range(200)]
    assert np.mean(scores) == pytest.approx(1 / 3, abs=0.06)
    reader = CaptionReader(Reader(matching), queries=3, again=False)
    captions = ["two green circle", "a green circle", "green", "red", "something"]
    assert [v.score for v in reader.map([(TASK, c) for c in captions])] == pytest.approx([1, 2 / 3, 1 / 3, 0, 0])


def test_the_length() -> None:
    reward = CaptionReward(Reader(matching), length=0.5, full=4, none=8)
    found = reward(batch(["green"] * 4, lengths=(4, 5, 7, 9)))
    assert found.terms["brief"].tolist() == [1, 0.75, 0.25, 0]
    assert (found.values - found.terms["answered"]).tolist() == pytest.approx([0.5, 0.375, 0.125, 0])
    assert CaptionReward(Reader(matching))(batch(["green"])).values.tolist() == [
        CaptionReader(Reader(matching))(TASK, "green").score
    ]
    default = CaptionReward(Reader(matching))
    assert (default.length, default.full, default.none, default.reader.queries) == (0.0, 2048, 3072, 8)


def test_questions_that_need_the_picture() -> None:
    """Of four questions one is clear, one leaks, one is unclear, and one is answered A with and without."""
    names = ["clear", "leaks", "unclear", "always"]
    rows = [{**ROWS[0], "question": name} for name in names]
    picture = Picture(b"seen")
    message = {"role": "user", "content": "<image>Describe.", "images": (picture,)}
    task = Task("t", (message,), {"questions": rows, "more": 1}, "none")  # type: ignore[arg-type]

    def say(prompt: str) -> str:
        seen, letters = prompt.startswith("<seen><image>\n"), {v: k for k, v in options_of(prompt).items()}
        if "always" in prompt:
            return "A"
        knows = seen if "clear" in prompt and "unclear" not in prompt else "leaks" in prompt
        return letters["green"] if knows else "A"

    engine = Reader(say)
    made = Maker(read_pipeline("S007", {}), {"solver": Model("m", engine), "writer": Model("m", engine)}).make([task])
    [kept] = made.tasks
    assert kept.reference == {"questions": [{**rows[0], "seen": 1.0, "blind": 0.25}], "more": 1}
    assert len(engine.asked) == 32 and sum(p.startswith("<seen>") for p in engine.asked) == 16
    assert all("letter of one option" in p and "Describe" not in p for p in engine.asked)
    assert (Visible().seen, Visible().blind, Visible().sampling.max_tokens) == (0.75, 0.25, 16)
    nobody = dict.fromkeys(("solver", "writer"), Model("m", Reader(lambda p: "A")))
    dropped = Maker(read_pipeline("S007", {}), nobody).make([task])
    assert not dropped.tasks and dropped.counts["visible"].dropped.total() == 1
    loose = read_pipeline("S007", {"seen": 0.25, "blind": 0.2}).steps[1][1]
    assert (loose.seen, loose.blind) == (0.25, 0.2)
    for bad in ({"seen": 1.1}, {"blind": -0.1}):
        with pytest.raises(UsageError, match="must be in"):
            Visible(**bad)
    with pytest.raises(UsageError, match="has no picture"):
        Visible().check([TASK])
    with pytest.raises(UsageError, match="has no questions"):
        Visible().check([replace(task, reference=None)])
    Visible().check([task])


def test_a_model_writes_questions() -> None:
    """It sees the picture; what cannot be used is left out, what is there stays, and a picture without any goes."""
    rows = [
        {"question": "How many?", "options": ["one", "two"], "answer": "two"},
        {"question": "how many?", "options": ["one", "two"], "answer": "one"},
        {"question": "Where?", "options": ["left", "left"], "answer": "left"},
        {"question": "What?", "options": ["a cat", "a dog"], "answer": "a cow"},
        {"question": "Which?", "options": [1, 2, 3], "answer": 3},
        "no row",
    ]
    assert read_choices(f"So: {json.dumps(rows)} are they", 5) == [
        rows[0],
        {"question": "Which?", "options": ["1", "2", "3"], "answer": "3"},
    ]
    assert [len(read_choices(json.dumps(rows), 1)), read_choices("no [list", 5), read_choices("{}", 5)] == [1, [], []]
    message = {"role": "user", "content": "<image>Describe.", "images": (Picture(b"seen"),)}
    task = Task("t", (message,), {"more": 1}, "none")  # type: ignore[arg-type]
    writer = Reader(lambda p: json.dumps(rows[:1]))
    solver = Reader(lambda p: next(k for k, v in options_of(p).items() if v == ("two" if "<image>" in p else "one")))
    models = {"writer": Model("w", writer), "solver": Model("s", solver)}
    [made] = Maker(read_pipeline("S007", {}), models).make([task]).tasks
    assert made.reference["more"] == 1
    assert made.reference["questions"] == [{**rows[0], "seen": 1.0, "blind": 0.0}]
    [prompt] = writer.asked
    assert prompt.startswith("<seen><image>\nWrite 5 hard") and "Describe" not in prompt
    assert (writer.sampling[0].temperature, writer.sampling[0].max_tokens) == (0.1, 2048)
    models["writer"] = Model("w", Reader(lambda p: "none"))
    left = Maker(read_pipeline("S007", {"count": 2}), models).make([task])
    assert not left.tasks and left.counts["questions"].dropped.total() == 1
    with pytest.raises(UsageError, match="count 0"):
        WrittenChoices(0)
    with pytest.raises(UsageError, match="has no picture"):
        WrittenChoices().check([TASK])


def test_task_files_hold_pictures() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    task = Captions(pixels=8)[0]
    row = json.loads(json.dumps(row_of(task)))
    back = task_of(row, "row 1")
    assert back.prompt == task.prompt and back.reference == task.reference and pictures(back.prompt)[0].open().size
    row["prompt"][0]["images"] = ["http://elsewhere"]
    with pytest.raises(UsageError, match="row 1: 'http://elsewhere' is no data:image"):
        task_of(row, "row 1")
    for wrong in (3, [4]):
        row["prompt"][0]["images"] = wrong
        with pytest.raises(UsageError, match="row 1: field 'images' of a message is no list"):
            task_of(row, "row 1")
    sampling = catalogue.make("S007", reader=Keywords([])) and Visible().sampling
    one, other = (Request(Captions(pixels=8)[i].prompt, 1, sampling, 0) for i in (0, 1))
    assert key_of("m", one) == key_of("m", one) != key_of("m", other)


def test_drawn_captions() -> None:
    """Every question is answered by the description that says all; the picture has its colours."""
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source, counts = Captions(seed=2, pixels=8), Counter[int]()
    for i in range(30):
        task = source[i]
        count, _, rest = str(task.solution).partition(" ")
        each = [one.split() for one in rest.partition(": ")[2].split("; ")]
        known = {"How many shapes are there?": count}
        for colour, shape, place in each:
            known |= {f"What colour is the {shape}?": colour, f"Where is the {shape}, by row and column?": place}
        questions = questions_of(task)
        assert {q.text: q.options[q.right] for q in questions} == known and len(known) == 2 * len(each) + 1
        assert all(len(q.options) == 4 for q in questions)
        image = np.asarray(pictures(task.prompt)[0].open()).reshape(-1, 3)
        assert {n for n, c in COLOURS.items() if (image == c).all(-1).any()} == {colour for colour, *_ in each}
        counts[len(each)] += 1
    assert set(counts) == {1, 2, 3} and source[3] == source[3] != source[4] and source.size is None
    assert {q.right for i in range(8) for q in questions_of(source[i])} == {0, 1, 2, 3}
    assert described([Drawn("cross", "red", 0, 1)]) == "1 shape: red cross 1,2"
    for wrong in ({"grid": 1}, {"pixels": 7}, {"most": 5}, {"most": 0}, {"seed": -1}):
        with pytest.raises(UsageError):
            Captions(**wrong)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        (None, "task t has no questions"),
        ({"questions": []}, "has no questions"),
        ({"questions": "A"}, "has no questions"),
        ({"questions": [{**ROWS[0], "answer": "pink"}]}, "a question must have"),
        ({"questions": [{**ROWS[0], "options": ["green"]}]}, "a question must have"),
        ({"questions": [{**ROWS[0], "options": ["green", "green"]}]}, "a question must have"),
        ({"questions": [{"question": "?"}]}, "a question must have"),
        ({"questions": [3]}, "a question must have"),
    ],
)
def test_what_are_no_questions(reference: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CaptionReward(Keywords([])).check_tasks([TASK, replace(TASK, reference=reference)])


def test_a_question_has_two_to_26_options() -> None:
    def with_options(count: int) -> Task:
        options = [f"option {i}" for i in range(count)]
        return replace(TASK, reference={"questions": [{"question": "?", "options": options, "answer": options[-1]}]})

    assert [len(questions_of(with_options(count))[0].options) for count in (2, 26)] == [2, 26]
    for count in (1, 27):
        with pytest.raises(UsageError, match="2 to 26, all different"):
            questions_of(with_options(count))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reader": None}, "nobody reads the captions"),
        ({"reader": 3}, "the judge must be an engine"),
        ({"queries": -1}, "queries -1"),
        ({"template": "{caption}"}, "template show"),
        ({"length": -0.1}, "length -0.1"),
        ({"full": 5, "none": 5}, "full 5 < none 5"),
        ({"full": -1}, "full -1"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CaptionReward(**{"reader": Keywords([]), **options})


def test_the_method() -> None:
    made = catalogue.make("S007", reader=Keywords([]), shuffle=False, length=0.1, full=3, none=5, queries=2)
    reward = made.reward
    assert (reward.reader.shuffle, reward.reader.queries, reward.length) == (False, 2, 0.1)
    assert (reward.full, reward.none, made.objective.kl_weight, made.credit.normalise) == (3, 5, 0.04, True)
    assert catalogue.make("S007", reader=Keywords([]), kl_weight=0.1).objective.kl_weight == 0.1
    # As its authors' code has it: eight draws with replacement, options shuffled, replies of a word drawn at .6.
    for reader in (catalogue.make("S007", reader=Keywords([])).reward.reader, CaptionReader(Keywords([]))):
        assert (reader.queries, reader.shuffle, reader.again) == (8, True, True)
        assert (reader.temperature, reader.max_tokens) == (0.6, 8)
    own = catalogue.make("S007", reader=Keywords([])).reward
    assert (own.length, own.full, own.none) == (0.0, 2048, 3072)
    assert CaptionReward(Keywords([]), length=1, full=0, none=1).full == 0


def test_it_trains_and_is_measured(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    reader = {"name": "keywords", "replies": [["a", "A"]], "otherwise": "B"}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 64, "vision": {"hidden": 16, "layers": 1}}},
        tasks={"source": {"name": "captions", "pixels": 8}, "eval_size": 2},
        method={"name": "S007", "options": {"reader": reader, "queries": 2}, "reward": None},
        warmup={"steps": 0},
        run={"checkpoint_every": 100},
        rollout={"prompts": 2, "group": 4, "max_tokens": 6},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and any(row["grad_norm"] > 0 for row in rows)
    assert all(row["reward/mean"] == row["reward/answered"] and row["reward/read"] == 1 for row in rows)
    judge = "tasks.verify={name='assay.rewards.text.caption_reader:CaptionReader',queries=0,reader={name='keywords',"
    with pytest.raises(SystemExit) as ended:
        cli.main(["eval", str(folder), judge + "replies=[],otherwise='A'}}", "--samples", "1", "--json"])
    out = capfd.readouterr()
    assert not ended.value.code, out.err
    assert "pass@1" in out.out


def test_the_setting() -> None:
    """A short run: shuffled, descriptions name more than they did; as they stand, the hint is what is learned."""
    setting = load("captions", {"steps": 25, "lr": 1.0, "letter": 0.9})
    arms = [{"name": "S007", "options": {"kl_weight": 0.0, "shuffle": mixed}} for mixed in (True, False)]
    shuffled, plain = (setting.run(arm, 0, Path()) for arm in arms)
    assert shuffled["named"] > 0.5 > plain["named"] and plain["hints"] > 0.5 > shuffled["hints"]
    assert shuffled["rollouts"] == 25 * 2 * 8 and 0.3 < shuffled["area"] < shuffled["named"]
