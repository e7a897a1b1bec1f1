"""Find out by searching: questions and claims over documents that the policy has not read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.environments.base import Action, Observation
from assay.environments.search.corpus import Corpus, Document, read_corpus
from assay.environments.search.facts import make_world
from assay.environments.search.questions import Given, Kind, Made, Protocol, answer, read_questions
from assay.environments.tools import ToolEnvironment, ToolError, call, judged, say, tool
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.base import TaskSource
from assay.tasks.seeded import check_seed
from assay.types import Task, Verdict
from assay.verify.grounding.claims import plain_id, read_answer

_SEARCH = re.compile(r"<search>(.*?)</search>\s*\Z", re.DOTALL)
_ANSWER = re.compile(r"<answer>.*?</answer>", re.DOTALL)


@part("environment", "search")
class Search(ToolEnvironment):
    """Documents are searched by BM25 and opened; what is said without a call is the answer, and ends the episode.

    The corpus is made up for a seed (people, towns and events, whose facts join in several hops), or your own. A
    question is judged by the verifier ``text``, a claim by ``claim``, on what was said last; a claim's answer that
    cites a document which was never shown is wrong, whatever it says. The state is what was shown: identifiers that
    the policy writes itself, or results that it makes up, are not.

    With ``protocol="tags"`` there are no tools: a turn that ends with ``<search>query</search>`` is answered by an
    ``<information>`` block, and one with an ``<answer>`` ends the episode. With ``protocol="given"`` nothing is
    searched: the documents are in the prompt, the evidence among them, and the first turn answers. Such tasks have
    worked solutions, and may be asked with any rollout.

    Args:
        kind: what is asked of a made corpus: ``questions``, ``claims`` or ``both``.
        hops: facts that an answer takes, at most, 1 to 3.
        documents: of a made corpus, at least 10.
        corpus: a file of rows ``{"id", "title", "text"}`` in place of it.
        questions: tasks over that: a file of rows ``{"question", "answer"}`` or ``{"claim", "label", "evidence"}``.
        shown: documents that a search shows, or that are given.
        chars: of a document that a search shows, at most; ``open`` shows all.
        searches: searches and openings there are.
        protocol: ``tools``, ``tags`` or ``given``.
        seed: of corpus and tasks, >= 0.

    Raises:
        UsageError: an option out of range, questions without a corpus, or a file that cannot be read.
    """

    def __init__(
        self,
        kind: Kind = "questions",
        hops: int = 3,
        documents: int = 120,
        corpus: Path | None = None,
        questions: Path | None = None,
        shown: int = 3,
        chars: int = 400,
        searches: int = 8,
        protocol: Protocol = "tools",
        seed: int = 0,
    ):
        check_seed("environment 'search'", seed)
        if not 1 <= hops <= 3 or documents < 10 or min(shown, chars, searches) < 1:
            raise UsageError(
                f"environment 'search': hops {hops} must be 1 to 3, documents {documents} at least 10, and shown "
                f"{shown}, chars {chars} and searches {searches} at least 1"
            )
        if questions is not None and corpus is None:
            raise UsageError("environment 'search': questions are over a corpus; give corpus as well")
        self.questions, self.made = questions, Made(seed, documents, kind, hops, protocol)
        self.own = corpus is not None
        self.corpus: Corpus = make_world(seed, documents).corpus if corpus is None else read_corpus(corpus)
        self.shown, self.chars, self.searches, self.protocol = shown, chars, searches, protocol

    def tasks(self) -> TaskSource:
        if self.own and self.questions is None:
            raise UsageError(
                "environment 'search': a corpus of your own has no tasks; give questions, or tasks from another source"
            )
        tasks: TaskSource = self.made if self.questions is None else read_questions(self.questions, self.protocol)
        return Given(tasks, self.corpus, self.shown, self.chars) if self.protocol == "given" else tasks

    def begin(self, task: Task, seed: int) -> None:
        self.left = self.searches
        self.seen = {id: self.corpus.documents[id].title for id in task.meta.get("shown", ())}

    def reset(self, task: Task, seed: int) -> Observation:
        opened = super().reset(task, seed)
        return opened if self.protocol == "tools" else Observation(opened.messages, (), opened.state)

    @tool
    def search(self, query: str) -> str:
        "Search the documents; shows the best that fit, each as [[id]] title: text."
        self._spend()
        found = self.corpus.find(query, self.shown)
        lines = "\n".join(self._show(document, self.chars) for document in found) or "nothing found"
        return f"{lines}\n({self.left} left)"

    @tool
    def open(self, document: str) -> str:
        "Show the whole of a document, by its id."
        found = self.corpus.documents.get(plain_id(document))
        if found is None:
            raise ToolError(f"there is no document {document[:60]!r}")
        self._spend()
        return f"{self._show(found, None)}\n({self.left} left)"

    def said(self, text: str) -> str | None:
        if self.protocol != "tags" or _ANSWER.search(text):
            return None
        asked = _SEARCH.search(text)
        if asked is None:
            raise ToolError("end a turn with <search>query</search>, or with <answer>...</answer>")
        return f"<information>\n{self.search(asked[1].strip())}\n</information>"

    def state_key(self) -> str:
        return f"{self.task.id}: {' '.join(sorted(self.seen))}"

    def state_json(self) -> Any:
        return {"answer": self.answer, "retrieved": sorted(self.seen), "left": self.left}

    def verdict(self) -> Verdict:
        if self.answer is None or self._under_way:
            return Verdict.wrong("no answer was given")
        if self.task.kind == "claim":
            invented = sorted(read_answer(self.answer)[1] - set(self.seen))
            if invented:
                return Verdict.wrong(f"cites {invented[0]!r}, which it was never shown")
        return judged(self.task, self.answer)

    def gold(self) -> Sequence[Action]:
        """Return a search for each entity on the way, an opening where that would not show it, and the answer.

        Raises:
            UsageError: the task does not say what is on the way, as none over a corpus of your own does.
        """
        if self.protocol == "given" and self.task.solution is not None:
            return [say(self.task.solution)]
        if "entities" not in self.task.meta:
            raise UsageError(f"environment 'search': task {self.task.id} has no known way to its answer")
        steps: list[Action] = []
        tags = self.protocol == "tags"
        for i, (name, id) in enumerate(zip(self.task.meta["entities"], self.task.meta["evidence"], strict=True)):
            found = self.corpus.find(name, self.shown)
            if tags:
                opening = "<plan>Look up each in turn.</plan>\n" if not i else ""
                steps.append(say(f"{opening}<think>What is known of {name}?</think>\n<search>{name}</search>"))
            else:
                steps.append(call("search", query=name))
                if id not in {d.id for d in found}:
                    steps.append(call("open", document=id))
        thought = "<think>That is all it takes.</think>\n" if tags else ""
        return [*steps, say(f"{thought}{answer(self.task)}")]

    def _spend(self) -> None:
        if not self.left:
            raise ToolError("no searches are left; answer now")
        self.left -= 1

    def _show(self, document: Document, chars: int | None) -> str:
        """Return a document as it is shown, and note that it was."""
        self.seen[plain_id(document.id)] = document.title
        return document.told(chars)
