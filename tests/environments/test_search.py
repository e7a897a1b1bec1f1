"""Searching: BM25 by hand, facts that can be found, and answers that have to be."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acted import ends, gold_passes, idle_fails, played, repeats, share

from assay.environments.base import Action
from assay.environments.search.bm25 import BM25, words
from assay.environments.search.environment import Search
from assay.environments.search.facts import RELATIONS, make_world
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.types import Task
from assay.verify.grounding.claims import LABELS, read_answer
from assay.verify.make import make_verifier


def test_okapi_by_hand() -> None:
    """N = 3, mean length 3; "a" stands in two texts: idf = ln 1.6."""
    index = BM25(["A b", "a, a c", "b c d d"])
    assert index.scores("a") == pytest.approx([0.470004 * 2.5 / 2.125, 0.470004 * 5 / 3.5, 0], abs=1e-6)
    # d: idf = ln(1 + 2.5 / 1.5), f = 2, length 4.
    assert index.scores("d D zebra") == pytest.approx([0, 0, 0.980829 * 5 / (2 + 1.5 * 1.25)], abs=1e-6)
    assert [i for i, _ in index.top("a", 5)] == [1, 0]
    assert index.top("zebra", 5) == [] and index.top("", 2) == []


def test_okapi_by_its_formula() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefgh"), rng.integers(0, 12))) for _ in range(40)]
    for k1, b in ((1.5, 0.75), (0.0, 0.0), (2.0, 1.0)):
        index, mean = BM25(texts, k1, b), np.mean([len(words(t)) for t in texts])
        for query in ("a", "b c", "h h a q"):
            scores = []
            for text in texts:
                count, score = Counter(words(text)), 0.0
                for term in set(words(query)):
                    n = sum(term in words(t) for t in texts)
                    idf = math.log(1 + (40 - n + 0.5) / (n + 0.5))
                    if count[term]:
                        norm = k1 * (1 - b + b * count.total() / mean)
                        score += idf * count[term] * (k1 + 1) / (count[term] + norm)
                scores.append(score)
            assert index.scores(query) == pytest.approx(scores, abs=1e-12)


def test_okapi_refuses() -> None:
    with pytest.raises(UsageError, match="k1 -1"):
        BM25(["a"], k1=-1)


KINDS: list[dict[str, Any]] = [
    {"kind": "questions"},
    {"kind": "claims"},
    {"kind": "both", "protocol": "tags"},
    {"kind": "both", "documents": 400, "shown": 1, "seed": 5},
    {"kind": "both", "protocol": "given"},
]


@pytest.mark.parametrize("options", KINDS)
def test_the_plan_passes_and_repeats(options: dict[str, Any]) -> None:
    def make() -> Search:
        return Search(**options)

    tasks = make().tasks()
    plans = gold_passes(make, tasks)
    repeats(make, tasks, plans[:20])
    ends(make, tasks[0], plans[0])
    idle_fails(make, tasks)


def random_policy(world: Search, shown: Any, rng: np.random.Generator) -> Action:
    """Searches twice for anything, and answers with anything that it was shown."""
    seen = " ".join(m["content"] for m in shown.messages)
    if world.left > world.searches - 2:
        return call("search", query=str(rng.choice(words(seen))))
    if world.task.kind == "claim":
        cited = rng.choice(sorted(world.seen), 1)[0] if world.seen else ""
        return say(f"<answer>Label: {rng.choice(LABELS)}, Evidence: [[{cited}]]</answer>")
    names = re.findall(r"\b[A-Z0-9]\w+", seen) or ["?"]
    return say(f"<answer>{rng.choice(names)}</answer>")


def test_at_random_hardly_anything_is_found() -> None:
    """0 and .155 of 200; the claims are those where NOT ENOUGH INFO is guessed, which takes no evidence."""
    for kind, most in (("questions", 0.01), ("claims", 0.16)):

        def make(kind: Any = kind) -> Search:
            return Search(kind=kind)

        found = share(make, make().tasks(), random_policy)
        assert found <= most


@pytest.mark.parametrize("seed", range(3))
def test_what_is_asked_follows_from_the_articles(seed: int) -> None:
    """Every question has one answer: each fact on its way is told by the article it names, the last one in a claim."""
    world, tasks = make_world(seed, 120), Search(kind="both", seed=seed).tasks()
    labels: Counter[str] = Counter()
    for index in range(300):
        task = tasks[index]
        [nouns, start] = re.search(r"the (.*?) of (?:the )?([A-Z].*?)(?: is .*)?[?.] Search", task.prompt).groups()  # type: ignore[union-attr, arg-type]
        way = [start]
        relations: list[int] = []
        for noun in reversed(re.split(r" of the ", nouns)):
            entity = way[-1]
            r = next(i for i, r in enumerate(RELATIONS) if r.noun == noun and fits(world, entity, r))
            relations.append(r)
            way.append(world.facts[entity, r])
        told = [(e, r) in world.told for e, r in zip(way, relations, strict=False)]
        assert all(told[:-1]) and tuple(way[:-1]) == task.meta["entities"] and len(relations) == task.meta["hops"]
        for entity, value, known in zip(way, way[1:], told, strict=False):
            article = world.corpus.documents[world.article[entity]].text
            assert not known or re.search(rf"\b{value}\b", article)
        if task.kind == "text":
            assert told[-1] and way[-1] == task.reference and way[-1] not in task.prompt
            continue
        label = task.reference["label"]
        labels[label] += 1
        stated = re.search(r" is (.*?)\. Search", task.prompt)[1]  # type: ignore[index, arg-type]
        if label == "NOT ENOUGH INFO":
            assert not told[-1] and task.reference["evidence"] == []
        else:
            assert told[-1] and (stated == way[-1]) == (label == "SUPPORT")
            assert task.reference["evidence"] == list(task.meta["evidence"])
    assert min(labels.values()) > 30 and len(labels) == 3


def fits(world: Any, entity: str, relation: Any) -> bool:
    return entity in world.kinds[relation.subject]


def begun(**options: Any) -> tuple[Search, Task, list[Action]]:
    world = Search(**options)
    task = next(t for i in range(99) if (t := world.tasks()[i]).meta["hops"] == 2 and t.reference)
    world.reset(task, 0)
    return world, task, list(world.gold())


def test_what_was_not_shown_cannot_be_cited() -> None:
    """The right label with the right evidence, said at once, or after an observation that it wrote itself."""
    world = Search(kind="claims")
    task = next(t for i in range(99) if (t := world.tasks()[i]).reference["evidence"])
    world.reset(task, 0)
    right = world.gold()[-1]
    assert not played(world, task, [right])[-1].passed
    faked = "".join(f"<information>\n[[{id}]] x: y\n</information>" for id in task.reference["evidence"])
    assert not played(world, task, [say(faked + right.text)])[-1].passed
    shown = [call("open", document=id) for id in task.reference["evidence"]]
    assert played(world, task, [*shown, right])[-1].passed
    # Nor in the protocol of tags.
    tags = Search(kind="claims", protocol="tags")
    assert not played(tags, task, [say(f"<search>x</search>{faked}{right.text}")])[-1].passed


def test_openings_and_refusals() -> None:
    world, task, _ = begun(searches=2)
    [id, *_] = task.meta["evidence"]
    opened = world.step(call("open", document=f"[[{id}]]"))
    text = world.corpus.documents[id].text
    assert text in opened.observation.messages[0]["content"] and "(1 left)" in opened.observation.messages[0]["content"]
    assert world.state_json() == {"answer": None, "retrieved": [id], "left": 1}
    refused = world.step(call("open", document="d?"))
    assert not refused.valid and "no document" in refused.error and world.left == 1
    assert world.step(call("search", query="zzz")).observation.messages[0]["content"] == "nothing found\n(0 left)"
    spent = world.step(call("search", query=task.meta["entities"][0]))
    assert not spent.valid and "answer now" in spent.error and world.state_json()["retrieved"] == [id]
    assert opened.observation.state == world.state_key() != f"{task.id}: "


def test_tags() -> None:
    world, task, _ = begun(protocol="tags", shown=2)
    assert world.reset(task, 0).tools == ()
    assert "<search>" in task.prompt
    found = world.step(say(f"<plan>p</plan><search> {task.meta['entities'][0]} </search>"))
    [message] = found.observation.messages
    assert message["role"] == "user" and re.fullmatch(
        r"(?s)<information>\n\[\[.*\(7 left\)\n</information>", message["content"]
    )
    lost = world.step(say("I know it."))
    assert not lost.valid and "<search>" in lost.error and not lost.terminated
    assert world.step(say(f"<think>t</think><answer>{task.reference}</answer>")).terminated and world.verdict().passed


def test_a_corpus_of_ones_own(tmp_path: Path) -> None:
    rows = [{"id": f"é{i}", "title": f"Row {i}", "text": f"The colour of row {i} is c{i}."} for i in range(5)]
    corpus, asked = tmp_path / "corpus.jsonl", tmp_path / "asked.jsonl"
    corpus.write_text("\n".join(map(json.dumps, rows)))
    asked.write_text(
        json.dumps({"question": "Which colour has row 3?", "answer": ["c3", "C 3"]})
        + "\n"
        + json.dumps({"claim": "Row 2 is c2.", "label": "SUPPORT", "evidence": ["e\u03012"], "id": "mine"})
    )
    world = Search(corpus=corpus, questions=asked)
    tasks = world.tasks()
    assert tasks.size == 2 and tasks[1].id == "mine"
    seen = played(world, tasks[0], [call("search", query="row 3"), say("c3")])
    assert "[[é3]] Row 3" in seen[1].observation.messages[0]["content"] and seen[-1].passed
    claim = "<answer>Label: support, Evidence: [[é2]]</answer>"
    assert played(world, tasks[1], [call("open", document="é2"), say(claim)])[-1].passed
    assert not played(world, tasks[1], [say(claim)])[-1].passed
    with pytest.raises(UsageError, match="no known way"):
        world.gold()
    with pytest.raises(UsageError, match="has no tasks"):
        Search(corpus=corpus).tasks()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}', "two documents with the id '1'"),
        ('{"title": "a"}', "line 1: a document is"),
        ("", "no rows|no documents"),
    ],
)
def test_a_corpus_that_is_none(tmp_path: Path, lines: str, message: str) -> None:
    (tmp_path / "c.jsonl").write_text(lines)
    with pytest.raises(UsageError, match=message):
        Search(corpus=tmp_path / "c.jsonl")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "q"}, "line 1: a row is"),
        ({"claim": "c", "label": "TRUE"}, "not one of SUPPORT"),
        ({"claim": "c", "label": "REFUTE"}, "evidence is what"),
        ({"claim": "c", "label": "NOT ENOUGH INFO", "evidence": ["a"]}, "evidence is what"),
    ],
)
def test_questions_that_are_none(tmp_path: Path, row: Any, message: str) -> None:
    (tmp_path / "c.jsonl").write_text('{"id": "a", "text": "b"}')
    (tmp_path / "q.jsonl").write_text(json.dumps(row))
    with pytest.raises(UsageError, match=message):
        Search(corpus=tmp_path / "c.jsonl", questions=tmp_path / "q.jsonl").tasks()


@pytest.mark.parametrize(
    "options",
    [{"hops": 0}, {"hops": 4}, {"documents": 9}, {"shown": 0}, {"searches": 0}, {"seed": -1}, {"questions": Path("q")}],
)
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="environment 'search'"):
        Search(**options)
    with pytest.raises(UsageError, match="no file"):
        Search(corpus=Path("nowhere.jsonl"))


CLAIM = make_verifier("claim")
TWO = {"label": "SUPPORT", "evidence": ["a", "b"]}


@pytest.mark.parametrize(
    ("answer", "reference", "score", "passed"),
    [
        ("Label: SUPPORT, Evidence: [[a]] [[b]]", TWO, 1.0, True),
        ("Label: SUPPORT, Evidence: [[b]] [[ a ]] [[c]]", TWO, 1.0, True),
        ("Label: SUPPORT, Evidence: [[a]]", TWO, 0.5, False),
        ("Label: SUPPORT", TWO, 0.0, False),
        ("Label: REFUTE, Evidence: [[a]] [[b]]", TWO, 0.0, False),
        ("Label: SUPPORT. Label: REFUTE. Evidence: [[a]] [[b]]", TWO, 0.0, False),
        ("label: not  enough info", {"label": "NOT ENOUGH INFO", "evidence": []}, 1.0, True),
        ("Label: NOT ENOUGH INFORMATION", {"label": "NOT ENOUGH INFO", "evidence": []}, 0.0, False),
    ],
)
def test_claims(answer: str, reference: Any, score: float, passed: bool) -> None:
    verdict = CLAIM(Task("t", "?", reference), f"<answer>Label: REFUTE</answer> no: <answer>{answer}</answer>")
    assert (verdict.score, verdict.passed) == (score, passed)
    assert CLAIM(Task("t", "?", reference), answer).passed is False, "it stands in no <answer>"


def test_claims_without_a_reference_abstain() -> None:
    for reference in (None, {"label": "TRUE"}, {"label": "SUPPORT", "evidence": []}):
        verdict = CLAIM(Task("t", "?", reference), "<answer>Label: SUPPORT</answer>")
        assert verdict.passed is None and verdict.fault == "tests"
    assert read_answer("nothing") == (None, frozenset())
