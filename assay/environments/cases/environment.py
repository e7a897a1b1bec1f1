"""Answer questions about patients by thinking and looking up, a cycle at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from assay.environments.base import Action, Observation, Step
from assay.environments.cases.clip import embedded
from assay.environments.cases.diseases import make_medicine
from assay.environments.cases.patients import ASKED, LABELS, Case, Kind, Patients, earlier
from assay.environments.search.corpus import Corpus
from assay.environments.tools import judged, say
from assay.errors import UsageError
from assay.media import MARK
from assay.registry import part
from assay.tasks.seeded import check_seed
from assay.types import Message, Task, Verdict

QUERY = re.compile(r"<query>(.*?)</query>\s*\Z", re.DOTALL)
ANSWER = re.compile(r"<answer>.*?</answer>", re.DOTALL)


@part("environment", "cases")
class Cases:
    """A patient's findings or image, a question with four options, and a knowledge base behind a retriever.

    A turn that ends with ``<query>...</query>`` is answered by the best lines of the knowledge base, by BM25, in a
    ``<retrieve>`` block; what was found is kept as the turn's ``info["retrieved"]``, so that blocks a policy writes
    itself are none. A turn with an ``<answer>`` ends the episode, judged by the verifier ``choice``; the part ``found``
    says whether a line that tells the answer was retrieved. Diseases and drugs are made up for the seed, so that
    nobody knows them by heart; the findings are real ones.

    Images are vectors over findings, with noise. Captions stand for them in the prompt; with ``frames = "picture"`` the
    prompt shows them as scans, for policies that see, and an encoder learned by contrast compares them with texts and
    with each other.

    Args:
        kind: tasks of ``text``, where findings are told, of ``image``, or ``both``, in turn.
        diseases: in the knowledge base, 4 to 200.
        asked: of ``diagnosis``, ``treatment`` and ``cause``; the last two take a second search.
        shown: lines that a query shows.
        queries: there are.
        noise: of images, standard deviation against findings of 1.
        earlier: patients in the case base.
        seed: of medicine, tasks and case base, >= 0.
        frames: how an image is shown: by a ``caption``, or as a ``picture``.

    Raises:
        UsageError: an option out of range; pictures without Pillow.

    Source: the think-query-retrieve cycle of Med-RwR (arXiv 2510.18303): 3 lines, at most 3 queries.
    """

    def __init__(
        self,
        kind: Kind = "both",
        diseases: int = 32,
        asked: Sequence[str] = tuple(ASKED),
        shown: int = 3,
        queries: int = 3,
        noise: float = 0.2,
        earlier: int = 96,
        seed: int = 0,
        frames: Literal["caption", "picture"] = "caption",
    ):
        check_seed("environment 'cases'", seed)
        if not 4 <= diseases <= 200 or min(shown, queries, earlier) < 1 or not 0 <= noise < 10:
            raise UsageError(
                f"environment 'cases': diseases {diseases} must be 4 to 200, shown {shown}, queries {queries} and "
                f"earlier {earlier} at least 1, and noise {noise:g} in [0, 10)"
            )
        if kind not in ("text", "image", "both") or not asked or not {*asked} <= {*ASKED}:
            raise UsageError(
                f"environment 'cases': kind {kind!r} is text, image or both, and asked {list(asked)} some of "
                f"{', '.join(ASKED)}"
            )
        self.patients = Patients(seed, diseases, kind, noise, tuple(asked), frames == "picture")
        self.corpus: Corpus = make_medicine(seed, diseases).corpus
        self.shown, self.queries, self.count = shown, queries, earlier
        self.task: Task | None = None
        self.answer: str | None = None

    def tasks(self) -> Patients:
        return self.patients

    def earlier(self) -> list[Case]:
        """Return the case base."""
        known = self.patients
        return earlier(known.seed, known.diseases, self.count, known.noise, known.drawn)

    def embed(self, images: Sequence[Any]) -> Any:
        """Return a vector of each image, by which those that are alike are found."""
        return embedded(images) if self.patients.drawn else images

    def reset(self, task: Task, seed: int) -> Observation:
        self.task, self.answer, self.left, self.found = task, None, self.queries, list[str]()
        shown = (Message(role="user", content=task.prompt),) if isinstance(task.prompt, str) else task.prompt
        return Observation(shown, state=self._state())

    def step(self, action: Action) -> Step:
        if self.task is None or self.answer is not None:
            raise RuntimeError("no episode is under way; call reset first")
        if ANSWER.search(action.text):
            self.answer = action.text
            return Step(Observation((), state=self._state()), terminated=True)
        asked = QUERY.search(action.text)
        query = " ".join(asked[1].replace('"', "").split()) if asked else ""
        wrong = "" if query else "end a turn with <query>what to look up</query>, or with <answer>...</answer>"
        if query and not self.left:
            wrong = "no queries are left; answer now"
        if wrong:
            return Step(self._shown(wrong), valid=False, error=wrong)
        self.left -= 1
        found = self.corpus.find(query, self.shown)
        self.found += [d.id for d in found]
        block = "\n".join(f"({i}) {d.text}" for i, d in enumerate(found, 1)) or "None"
        return Step(self._shown(f"<retrieve>\n{block}\n</retrieve>"), info={"query": query, "retrieved": block})

    def verdict(self) -> Verdict:
        if self.task is None or self.answer is None:
            return Verdict.wrong("no answer was given")
        verdict = judged(self.task, ANSWER.findall(self.answer)[-1])
        return replace(verdict, parts={**verdict.parts, "found": float(self._found())})

    def close(self) -> None:
        self.task = None

    def state_json(self) -> Any:
        return {"answer": self.answer, "retrieved": sorted({*self.found}), "left": self.left}

    def gold(self) -> Sequence[Action]:
        """Return a query for the findings, one for what is asked of the disease, and the answer.

        Raises:
            UsageError: the task is none of this environment's.
        """
        task = self.task
        if task is None or "disease" not in task.meta:
            raise UsageError("environment 'cases': the task does not say what disease it is about")
        option = task.meta["options"][LABELS.index(task.reference)]
        seen = str(task.question).partition(": ")[2].partition(".")[0]
        if seen == MARK:
            medicine = make_medicine(self.patients.seed, self.patients.diseases)
            seen = ", ".join(next(d.findings for d in medicine.diseases if d.name == task.meta["disease"]))
        steps = [say(f"<think>What shows {seen}?</think>\n<query>{seen}</query>")]
        if option != task.meta["disease"]:
            steps.append(say(f"<think>That is {task.meta['disease']}.</think>\n<query>{task.meta['disease']}</query>"))
        steps = steps[: self.queries]
        return [*steps, say(f"<think>That settles it.</think>\n<answer>{task.reference}. {option}</answer>")]

    def _found(self) -> bool:
        """Whether a line that tells the answer was retrieved: of the patient's disease, with the right option in it."""
        assert self.task is not None
        disease, options = self.task.meta.get("disease", ""), self.task.meta.get("options", ())
        right = options[LABELS.index(self.task.reference)] if options else ""
        lines = [self.corpus.documents[id].text for id in self.found]
        return bool(disease) and any(disease in line and right in line for line in lines)

    def _shown(self, text: str) -> Observation:
        return Observation((Message(role="user", content=text),), state=self._state())

    def _state(self) -> str:
        return f"{self.task.id if self.task else ''}: {self.left} {' '.join(sorted({*self.found}))}"
