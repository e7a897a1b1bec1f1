"""Challenges that one policy sets another: programs shown as examples to who writes them, questions to who answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.errors import RunError
from assay.media import MARK, Picture
from assay.tasks.pictures.edits import NAME, SETTINGS, Edit
from assay.tasks.seeded import generator
from assay.types import Group, Message, Task, pictures
from assay.verify.text.overlap import bleu

ASKED = f"""Write a Python function {NAME}(image, ...) that takes a PIL image and settings by name and returns an \
edited PIL image, and then {SETTINGS}, a list of four dictionaries of settings, for this picture of {{size}} pixels: \
{MARK}. The four results have to look different from each other. Use no randomness, save nothing, write no comments. \
Think within <think> and </think>, then give one block that opens with ```python. It may look like {{examples}}but \
must do something else."""
STARTING = f"""from PIL import Image

def {NAME}(image, side):
    return image.crop((0, 0, image.width * side // 8, image.height * side // 8))

{SETTINGS} = [
    {{'side': 2}},
    {{'side': 4}},
    {{'side': 6}},
    {{'side': 7}},
]
"""


@dataclass(slots=True)
class Challenges:
    """What is known of challenges so far; plain data.

    Examples are programs that the solver found neither easy nor out of reach, different from each other: a program of
    difficulty 1 - 2 |acc - 1/2| above ``least`` joins them where no other has a BLEU above ``novelty`` with it,
    settings apart. The ``kept`` most difficult stay, of equals the latest. Questions are those that some, and not all,
    of the solver's answers got right.

    Args:
        kept, novelty, least: see above.
        seed: of the draws.
    """

    kept: int = 50
    novelty: float = 0.25
    least: float = 0.5
    seed: int = 0
    examples: list[tuple[str, float]] = field(default_factory=list, init=False)
    questions: list[tuple[Task, float]] = field(default_factory=list, init=False, repr=False)
    asked: int = field(default=0, init=False)

    def tasks(self, groups: Sequence[Group], decode: Callable[[Sequence[int]], str]) -> list[Task]:
        """Return what the challenger is asked: a program for the first picture of each task.

        Half of the time one example is shown, else two.

        Raises:
            RunError: a task has no picture.
        """
        return [self.task(group.task) for group in groups]

    def task(self, task: Task) -> Task:
        """Return the challenger's task for the first picture of another."""
        found = pictures(task.prompt)
        if not found:
            raise RunError(f"task {task.id} has no picture to be edited; take tasks with pictures")
        rng = generator(self.seed, self.asked)
        self.asked += 1
        known = [code for code, _ in self.examples] or [STARTING]
        chosen = rng.permutation(len(known))[: 1 + int(rng.integers(2))]
        examples = "".join(f"\n```python\n{known[i]}```\n" for i in chosen)
        size = "x".join(map(str, found[0].open().size))
        text = ASKED.replace("{size}", size).replace("{examples}", examples)
        message: Message = {"role": "user", "content": text, "images": (found[0],)}
        return Task(f"challenge/{self.asked}/{task.id}", (message,), kind="none", meta={"source": "challenges"})

    def show(self, edit: Edit, difficulty: float) -> bool:
        """Make an edit an example, if it is difficult enough and new; say whether it is one."""
        if difficulty <= self.least:
            return False
        if any(bleu(code.partition(SETTINGS)[0], edit.program) > self.novelty for code, _ in self.examples):
            return False
        # The latest of equals first: the sort keeps their order.
        self.examples = sorted([(edit.written, difficulty), *self.examples], key=lambda it: -it[1])[: self.kept]
        return True

    def ask(self, task: Task, accuracy: float) -> None:
        """Keep a question that the solver answered rightly in a share of its tries, if that is neither 0 nor 1."""
        if 0 < accuracy < 1:
            self.questions.append((task, worth(accuracy)))

    def taken(self, most: int) -> list[Task]:
        """Return the most difficult questions so far, of equals the earlier, and forget them all."""
        chosen = sorted(self.questions, key=lambda it: -it[1])[:most]
        self.questions = []
        return [task for task, _ in chosen]

    def state_dict(self) -> dict[str, Any]:
        questions = [(written(task), difficulty) for task, difficulty in self.questions]
        return {"examples": list(self.examples), "questions": questions, "asked": self.asked}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.examples = [(code, difficulty) for code, difficulty in state["examples"]]
        self.questions = [(read(task), difficulty) for task, difficulty in state["questions"]]
        self.asked = int(state["asked"])


def worth(accuracy: float) -> float:
    """1 - 2 |acc - 1/2|: 1 for what is answered rightly half of the time, 0 for always or never."""
    return 1 - 2 * abs(accuracy - 0.5)


def written(task: Task) -> dict[str, Any]:
    """Return a question as plain data, its pictures as URLs; :func:`read` is the other way."""
    shown = [picture.url for picture in pictures(task.prompt)]
    return {"id": task.id, "text": task.question, "pictures": shown, "reference": task.reference, "kind": task.kind,
            "meta": dict(task.meta)}  # fmt: skip


def read(plain: Mapping[str, Any]) -> Task:
    images = tuple(Picture.from_url(url) for url in plain["pictures"])
    message: Message = {"role": "user", "content": plain["text"], "images": images}
    return Task(plain["id"], (message,), plain["reference"], plain["kind"], meta=dict(plain["meta"]))
