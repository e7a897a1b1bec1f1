"""Questions of one to three hops over a made-up country, and claims about it to verify."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from assay.environments.search.corpus import Corpus
from assay.environments.search.facts import RELATIONS, World, make_world
from assay.errors import UsageError
from assay.records.rows import read_rows
from assay.tasks.base import TaskSource
from assay.tasks.listed import Listed
from assay.tasks.seeded import check_index, generator
from assay.types import Task
from assay.verify.grounding.claims import LABELS, UNKNOWN, plain_id

Kind = Literal["questions", "claims", "both"]
Protocol = Literal["tools", "tags", "given"]

ANSWERED = {
    "questions": "End with <answer>the answer</answer>.",
    "claims": (
        "End with <answer>Label: SUPPORT, Evidence: [[id]] [[id]]</answer>, the label being SUPPORT, REFUTE or NOT "
        "ENOUGH INFO and the evidence the documents that show it."
    ),
}
HOW = {
    "tools": "Search the documents for what you need.",
    "tags": (
        "Begin with <plan>...</plan>. Then think in <think>...</think> and search in <search>...</search>, once a turn."
    ),
    "given": "Think in <think>...</think>, by the documents below.",
}


@dataclass(frozen=True, slots=True)
class Made:
    """Endless tasks over the country of a seed.

    The reference of a question is its answer, of a claim its label with the evidence; ``meta["hops"]`` are the entities
    on the way, ``meta["evidence"]`` the documents on them.
    """

    seed: int
    documents: int
    kind: Kind
    hops: int
    protocol: Protocol

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        rng = generator(self.seed, check_index(index, None), 1)
        world = make_world(self.seed, self.documents)
        kind = ("questions", "claims")[index % 2] if self.kind == "both" else self.kind
        label = LABELS[int(rng.integers(3))] if kind == "claims" else "SUPPORT"
        entities, relations, value = _chain(world, int(rng.integers(1, self.hops + 1)), label != UNKNOWN, rng)
        nouns = " of the ".join(RELATIONS[r].noun for r in reversed(relations))
        start = f"the {entities[0]}" if entities[0] in world.kinds["event"] else entities[0]
        evidence = [world.article[entity] for entity in entities]
        reference: Any
        if kind == "questions":
            asked = f"What is the {nouns} of {start}?"
            reference, judge = value, "text"
        else:
            if label != "SUPPORT":
                others = [v for v in world.kinds[RELATIONS[relations[-1]].value] if v != value]
                value = str(rng.choice(others))
            asked = f"Claim: the {nouns} of {start} is {value}."
            reference = {"label": label, "evidence": [] if label == UNKNOWN else evidence}
            judge = "claim"
        return Task(
            id=f"search/{self.seed}/{self.documents}/{kind}/{index}",
            prompt=f"{asked} {HOW[self.protocol]} {ANSWERED[kind]}",
            reference=reference,
            kind=judge,
            meta={"entities": tuple(entities), "evidence": tuple(evidence), "hops": len(relations)},
        )


def _chain(world: World, hops: int, told: bool, rng: np.random.Generator) -> tuple[list[str], list[int], str]:
    """Return the entities on a way through the facts, the relations taken, and where it ends.

    All facts but the last are told, and the last just where ``told``. No entity is met twice.
    """
    while True:
        kind = ("person", "town", "event")[int(rng.integers(3))]
        entities, relations = [str(rng.choice(world.kinds[kind]))], []
        for hop in range(hops):
            last = hop == hops - 1
            fitting = [
                r
                for r, relation in enumerate(RELATIONS)
                if relation.subject == kind
                and (entities[-1], r) in world.facts
                and ((entities[-1], r) in world.told) == (told or not last)
                and (last or relation.value in ("person", "town"))
            ]
            if not fitting:
                break
            r = int(rng.choice(fitting))
            value, kind = world.facts[entities[-1], r], RELATIONS[r].value
            relations.append(r)
            if value in entities:
                break
            if last:
                return entities, relations, value
            entities.append(value)


@dataclass(frozen=True, slots=True)
class Given:
    """The tasks of a source, each with the documents to answer it by: nothing has to be searched.

    They are those of ``meta["evidence"]`` or of a claim's reference, and what else fits the question best, ``shown`` in
    all or as many as there is evidence, in an order that tells nothing; their identifiers are in ``meta["shown"]``. A
    task that knows its evidence has the answer as its worked solution.
    """

    source: TaskSource
    corpus: Corpus
    shown: int
    chars: int

    @property
    def size(self) -> int | None:
        return self.source.size

    def __getitem__(self, index: int) -> Task:
        task = self.source[index]
        known = task.reference["evidence"] if task.kind == "claim" else ()
        ids = [plain_id(str(id)) for id in task.meta.get("evidence", known)]
        missing = [id for id in ids if id not in self.corpus.documents]
        if missing:
            raise UsageError(f"task {task.id}: there is no document {missing[0]!r}, which is its evidence")
        asked = task.question.partition(HOW["given"])[0]
        found = [plain_id(d.id) for d in self.corpus.find(asked, self.shown + len(ids))]
        chosen = [*ids, *(id for id in found if id not in ids)][: max(self.shown, len(ids))]
        order = generator(0, index).permutation(len(chosen))
        documents = [self.corpus.documents[chosen[i]] for i in order]
        told = "\n".join(document.told(self.chars) for document in documents)
        return replace(
            task,
            prompt=f"{task.question}\n\n<information>\n{told}\n</information>",
            solution=f"<think>That is all it takes.</think>\n{answer(task)}" if ids or task.kind == "claim" else None,
            meta={**task.meta, "shown": tuple(plain_id(d.id) for d in documents)},
        )


def answer(task: Task) -> str:
    """Return the right answer to a task, as it is asked for."""
    if task.kind != "claim":
        return f"<answer>{task.reference}</answer>"
    cited = " ".join(f"[[{id}]]" for id in task.reference["evidence"])
    return f"<answer>Label: {task.reference['label']}, Evidence: {cited}</answer>"


def read_questions(path: Path, protocol: Protocol) -> Listed:
    """Return the tasks of a file of rows ``{"question", "answer"}`` or ``{"claim", "label", "evidence"}``.

    Raises:
        UsageError: a row that is neither, or with a label that is none.
    """
    tasks = []
    for i, (place, row) in enumerate(read_rows(path)):
        task = _task(row, place, protocol)
        tasks.append(Task(str(row.get("id", f"{path.stem}/{i}")), task[0], task[1], task[2]))
    return Listed(tasks)


def _task(row: Any, place: str, protocol: Protocol) -> tuple[str, Any, str]:
    if isinstance(row, dict) and {"question", "answer"} <= set(row):
        return f"{row['question']} {HOW[protocol]} {ANSWERED['questions']}", row["answer"], "text"
    if not isinstance(row, dict) or not {"claim", "label"} <= set(row):
        raise UsageError(f"{place}: a row is {{'question', 'answer'}} or {{'claim', 'label', 'evidence'}}")
    if row["label"] not in LABELS:
        raise UsageError(f"{place}: the label is {row['label']!r}, not one of {', '.join(LABELS)}")
    evidence = row.get("evidence") or []
    evidence = json.loads(evidence) if isinstance(evidence, str) else list(evidence)
    if (row["label"] == UNKNOWN) == bool(evidence):
        raise UsageError(f"{place}: evidence is what supports or refutes a claim; {UNKNOWN} has none, the others have")
    reference = {"label": row["label"], "evidence": evidence}
    return f"Claim: {row['claim']} {HOW[protocol]} {ANSWERED['claims']}", reference, "claim"
