"""S166: segments of texts, the tasks made of them, what counts as a beginning, and the judge's say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import metrics, run

from assay.catalogue import make
from assay.errors import UsageError
from assay.lab.settings.open_ended.continuations import Setting
from assay.papers.rewards.s166_rlpt import ContinuationReward
from assay.registry import build
from assay.tasks.sentences import segments
from assay.tasks.text import Text
from assay.types import Episode, Task
from assay.verify.text.continuation import CLOSE, OPEN, Continuation, prediction

pytestmark = pytest.mark.usefixtures("one_thread")

TRUTH = Task("t", "?", ["It rains.", "Roads are wet."], kind="continuation")
ALPHABET = "".join(map(chr, range(32, 127))) + "\n"
FOUR = "The first sentence stands here. The second one follows it. A third comes after that. The fourth is the last."


def said(text: str, before: str = "I think so. ") -> str:
    return f"{before}{OPEN} {text} {CLOSE}"


# Segments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rains. Roads are wet.", ["It rains.", "Roads are wet."]),
        ("Dr. Smith met Mr. J. R. Jones at 3.14 p.m. on May 5. They spoke.", 2),
        ("See Fig. 3 and e.g. Chapter 2, i.e. the end. It is there.", 2),
        ('"Is it?" he asked. "It is!" She left.', ['"Is it?" he asked.', '"It is!"', "She left."]),
        ("Wait... what? No… yes.", 2),
        ("He did (as he said.) Then he left!", ["He did (as he said.)", "Then he left!"]),
        ("So did I. Then we left.", 2),
        ("1. Wash it. 2. Dry it.", ["1. Wash it.", "2. Dry it."]),
        ("今天下雨。路很湿！“真的吗？”是的。", ["今天下雨。", "路很湿！", "“真的吗？”", "是的。"]),
        ("A heading\n\nThe text\nof a paragraph.", ["A heading", "The text of a paragraph."]),
        ("no end", ["no end"]),
        ("", []),
        (" \n\n ", []),
        ("The mass of the U.S. economy grew. It shrank.", 2),
    ],
)
def test_sentences(text: str, expected: list[str] | int) -> None:
    found = segments(text)
    assert (len(found) if isinstance(expected, int) else found) == expected, found


def test_lines_and_paragraphs() -> None:
    text = "a = 1\nb = 2. C\n\n  d = 3\n"
    assert segments(text, "line") == ["a = 1", "b = 2. C", "d = 3"]
    assert segments(text, "paragraph") == ["a = 1 b = 2. C", "d = 3"]


@given(st.text(alphabet="aB.!? \n\"'。é1)", max_size=60), st.sampled_from(["sentence", "line", "paragraph"]))
def test_segments_lose_nothing_but_white_space(text: str, unit: Any) -> None:
    found = segments(text, unit)
    assert "".join("".join(found).split()) == "".join(text.split()) and all(found)


def test_segmentation_is_linear() -> None:
    assert len(segments("Dr. " * 50_000 + "end. Done.")) == 2


# Tasks


def document(folder: Path, text: str = FOUR, name: str = "a.txt") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_a_document_of_four_sentences(tmp_path: Path) -> None:
    source = build("tasks", {"name": "text", "path": str(document(tmp_path))})
    one, two, three, four = segments(FOUR)
    # (s_<i, s_i, s_i+1) for i = 2 ... n - 1, as the paper has it.
    assert [t.id for t in (source[i] for i in range(source.size))] == [
        "a.txt/2/next",
        "a.txt/2/middle",
        "a.txt/3/next",
        "a.txt/3/middle",
    ]
    assert source[0].reference == [two, three, four] and source[2].reference == [three, four]
    ahead, missing = source[2].question, source[3].question
    assert ahead.endswith(f"{one} {two}") and three not in ahead and four not in ahead
    assert missing.endswith(f"{one} {two}\n\n<MASK>\n\n{four}") and three not in missing
    assert OPEN in ahead and CLOSE in missing and source[0].kind == "continuation"
    with pytest.raises(IndexError):
        source[4]


def test_the_missing_are_a_share_of_the_next(tmp_path: Path) -> None:
    path = document(tmp_path, " ".join(f"This is sentence number {i} of the text." for i in range(102)))
    for middle, expected in ((0.0, 0), (0.25, 25), (1 / 3, 33), (1.0, 100)):
        found = [t.meta["sort"] for t in Text(path, middle=middle).tasks]
        assert (found.count("next"), found.count("middle")) == (100, expected)
    assert [t.meta["sort"] for t in Text(path, middle=0.5).tasks][:6] == ["next", "next", "middle"] * 2


def test_short_and_long_sentences_are_context_only(tmp_path: Path) -> None:
    path = document(tmp_path, "Here the story begins. Yes. " + "So it went on and on" * 3 + ". It ended well. Bye.")
    found = Text(path, min_chars=10, max_chars=30, middle=0.0).tasks
    assert [t.reference[0] for t in found] == ["It ended well."]
    assert found[0].question.count("Yes.") == 1


def test_a_context_is_cut_to_whole_segments(tmp_path: Path) -> None:
    path = document(tmp_path, "\n\n".join(f"Sentence {i:02d} of it." for i in range(9)))
    for context, count in ((1, 1), (18, 1), (37, 2), (38, 2), (10_000, 7)):
        task = Text(path, context=context, middle=0.0, min_chars=1).tasks[6]
        assert task.question.count("of it.") == count and "Sentence 06" in task.question, (context, task.question)


def test_folders_and_tables(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    document(tmp_path)
    document(tmp_path / "sub", FOUR.replace("third", "next"), "b.md")
    document(tmp_path, FOUR, "copy.txt")
    document(tmp_path, "not read", "c.html")
    assert {t.meta["document"] for t in Text(tmp_path).tasks} == {"a.txt", "sub/b.md"}, "a copy counts once"
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(json.dumps({"body": FOUR + f" Row {i}."}) for i in range(2)), encoding="utf-8")
    assert {t.meta["document"] for t in Text(rows, field="body").tasks} == {"rows.jsonl/1", "rows.jsonl/2"}
    with pytest.raises(UsageError, match=r"no text in a field 'bodi'.*'body'"):
        Text(rows, field="bodi")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"middle": 1.5}, "middle 1.5"),
        ({"min_chars": 50, "max_chars": 20}, "min_chars <= max_chars"),
        ({"min_chars": 300, "max_chars": 400}, "no sentence of 300 to 400"),
        ({"path": "nowhere.txt"}, "no file"),
        ({"path": "."}, None),
    ],
)
def test_what_cannot_be_is_told_in_one_line(tmp_path: Path, options: dict[str, Any], message: str | None) -> None:
    path = document(tmp_path)
    if options.get("path") == ".":
        (tmp_path / "empty").mkdir()
        options, message = {"path": tmp_path / "empty"}, "holds no files"
    with pytest.raises(UsageError, match=message) as error:
        Text(**{"path": path, **options})
    assert "\n" not in str(error.value)


def test_bad_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        Text(tmp_path / "x.txt")
    (tmp_path / "x.pdf").write_text("a", encoding="utf-8")
    with pytest.raises(UsageError, match="unknown format"):
        Text(tmp_path / "x.pdf")


# The rule


@pytest.mark.parametrize(
    ("text", "right", "parts"),
    [
        ("It rains.", True, {"formed": 1, "next": 1, "prefix": 1}),
        ("it   RAINS", True, {"formed": 1, "next": 1, "prefix": 1}),
        ("It rains. Roads are wet.", True, {"formed": 1, "next": 0, "prefix": 1}),
        ("It rains. Roads", True, {"formed": 1, "next": 0, "prefix": 1}),
        ("Roads are wet.", False, {"formed": 1, "next": 0, "prefix": 0}),
        ("It", False, {"formed": 1, "next": 0, "prefix": 0}),
        ("It rains. Roads are dry.", False, {"formed": 1, "next": 0, "prefix": 0}),
        ("It rains. Roads are wet. More.", False, {"formed": 1, "next": 0, "prefix": 0}),
        ("", False, {"formed": 1, "next": 0, "prefix": 0}),
    ],
)
def test_a_prediction_is_a_beginning_or_wrong(text: str, right: bool, parts: dict[str, float]) -> None:
    verdict = Continuation()(TRUTH, said(text))
    assert verdict.passed is right and verdict.score == right and verdict.parts == parts
    told = "" if right else "goes on with 'It rains.'" if text else "an empty prediction"
    assert verdict.feedback == told


def test_marks() -> None:
    assert prediction(said("a") + said(" b ")) == "b"
    assert prediction("a") is None and prediction(f"{CLOSE}a{OPEN}") is None and prediction(f"{OPEN}a") is None
    assert prediction(f"{OPEN}{OPEN}x{CLOSE} tail") == "x"
    assert prediction(said("a", before="")) == "a" and prediction("<", "<", ">") is None
    for bare in ("It rains.", f"{OPEN} It rains."):
        verdict = Continuation()(TRUTH, bare)
        assert verdict.passed is False and verdict.parts["formed"] == 0 and verdict.feedback == "no prediction"
    assert Continuation(open="<p>", close="</p>")(TRUTH, "<p>It rains</p>").passed


def test_near_predictions_by_f1() -> None:
    near = Continuation(near=0.6)
    assert Continuation(near=0.5)(TRUTH, said("It rained.")).passed, "one word of two either way"
    assert near(TRUTH, said("It rained.")).score == pytest.approx(0.5) and not near(TRUTH, said("It rained.")).passed
    # Of five words of the whole reference it has four, and none besides.
    verdict = near(TRUTH, said("It rains, roads wet."))
    assert verdict.passed and verdict.score == pytest.approx(2 * 4 / (4 + 5)) and verdict.parts["prefix"] == 0


def test_nothing_to_compare_with() -> None:
    for reference in (None, [], [" "]):
        assert Continuation()(Task("t", "", reference), said("x")).passed is None
    for bad in ({"near": 0.0}, {"near": 1.1}, {"open": ""}, {"close": ""}):
        with pytest.raises(UsageError):
            Continuation(**bad)


# The judge


class Judge:
    """An engine that says what it was told to of each prediction, and keeps its prompts."""

    def __init__(self, said: dict[str, tuple[str, str]]):
        self.said, self.asked, self.requests = said, list[str](), list[Any]()

    def encode(self, prompt: Any) -> Any:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> Any:
        raise NotImplementedError

    def decode(self, tokens: Any) -> str:
        raise NotImplementedError

    def generate(self, requests: Any) -> Any:
        self.asked += [r.prompt for r in requests]
        self.requests += requests
        assert all(r.sampling.temperature == 0 for r in requests)
        given = [r.prompt.partition("Prediction: ")[2].partition("\n\nDoes")[0] for r in requests]
        none = np.zeros(0, dtype=np.int64)
        return [[Episode(none, none, none == 0, None, *self.said[g])] for g in given]


def test_the_judge_decides_what_words_do_not(make_batch: Callable[..., Any]) -> None:
    judge = Judge(
        {
            "Rain falls.": ("Score: 1", "eos"),
            "Sun shines.": ("score = 0.", "eos"),
            "{predicted} fog": ("- Score: 1", "eos"),
            "Hail falls.": ("I cannot say, 1 of 2", "length"),
            "Snow falls.": ("Score: 1", "error"),
        }
    )
    texts = [
        "It rains.",
        "",
        "Rain falls.",
        "Rain falls.",
        "Sun shines.",
        "{predicted} fog",
        "Hail falls.",
        "Snow falls.",
    ]
    responses = [*map(said, texts), "Rain falls."]
    verdicts = [Continuation()(TRUTH, r) for r in responses]
    batch = make_batch(
        [1] * 9, [v.score for v in verdicts], [0] * 9, [v.passed for v in verdicts], responses, [TRUTH] * 9
    )
    found = make("S166", judge=judge).reward(batch)
    assert found.values.tolist() == [1, 0, 1, 1, 0, 1, 0, 0, 0]
    assert found.valid.tolist() == [True] * 6 + [False, False, True]
    assert found.terms["asked"].tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 0]
    assert len(judge.asked) == 5, "the same question is asked once"
    assert all("Truth: It rains. Roads are wet.\n" in prompt for prompt in judge.asked)


def test_other_tasks_abstentions_and_long_predictions_are_not_asked_of(make_batch: Callable[..., Any]) -> None:
    judge = Judge({})
    tasks = [Task("a", "", "4", kind="exact"), TRUTH, TRUTH]
    texts = [said("5"), said("x"), said("y" * 2001)]
    batch = make_batch([1] * 3, rewards=[0.5, 0, 0], passed=[False, None, False], texts=texts, tasks=tasks)
    found = make("S166", judge=judge).reward(batch)
    assert found.values.tolist() == [0.5, 0, 0] and found.valid.tolist() == [True, False, True] and not judge.asked
    plain = make("S166").reward(batch)
    assert plain.values.tolist() == [0.5, 0, 0] and set(plain.terms) == {"verdict"}


def test_a_prediction_is_judged_up_to_its_longest(make_batch: Callable[..., Any]) -> None:
    judge = Judge({"y" * 2000: ("Score: 1", "eos")})
    batch = make_batch([1, 1], passed=[False, False], texts=[said("y" * 2000), said("y" * 2001)], tasks=[TRUTH] * 2)
    assert ContinuationReward(judge)(batch).values.tolist() == [1, 0]
    assert [r.sampling.max_tokens for r in judge.requests] == [8]
    assert ContinuationReward(max_chars=1).max_chars == 1
    with pytest.raises(UsageError, match="max_chars"):
        ContinuationReward(max_chars=0)


def test_the_objective_has_no_divergence() -> None:
    method = make("S166")
    assert method.objective.kl_weight == 0 and "reference_logprobs" not in method.needs


def test_what_is_no_judge() -> None:
    with pytest.raises(UsageError, match="must be an engine"):
        make("S166", judge=SimpleNamespace())
    with pytest.raises(UsageError, match="template"):
        ContinuationReward(template="{reference}")


# The lab's setting


def test_the_setting_starts_as_it_says() -> None:
    found = Setting(steps=1, lr=0.0).run({"name": "S166"}, 3, Path())
    assert found["area"] == pytest.approx(found["start"]) and 0 < found["beginning"] < found["first"] < 1
    assert found["sentences"] > 2, "responses run on"
    short = Setting(steps=1, lr=0.0, long=-50.0).run({"name": "S166"}, 3, Path())
    assert short["sentences"] == pytest.approx(1) and short["first"] == pytest.approx(short["beginning"])
    learned = Setting(texts=1, steps=15, long=0.0, lr=3.0).run({"name": "S166"}, 3, Path())
    assert learned["first"] > learned["start"] and np.isfinite(learned["area"])


def test_a_language_model_learns_from_a_folder(tmp_path: Path) -> None:
    """From a recipe: a folder of texts is all that a run needs."""
    (tmp_path / "texts").mkdir()
    for n in range(6):
        document(tmp_path / "texts", " ".join(f"Text {n} has {i} of its lines." for i in range(6)), f"{n}.txt")
    folder = run(
        tmp_path / "run",
        method={"name": "S166", "reward": "S166"},
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 1024, "alphabet": ALPHABET}},
        tasks={"source": {"name": "text", "path": str(tmp_path / "texts"), "min_chars": 5}},
        warmup={"steps": 0},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 1},
    )
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(steps) == 2 and all(row["reward/mean"] == 0 for row in steps), "four tokens hold no prediction"
