"""S045: an open question with a better and a worse answer becomes a choice, which a rule can grade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.asking import filled
from assay.errors import UsageError
from assay.tasks.making.work import Dropped, Here, Pipeline, child
from assay.types import Task

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TEMPLATE = """Which of these responses to the request is the best one?

Request:
{question}

{responses}

Reason about them, then end with the letter of the best response in \\boxed{}."""


@dataclass(frozen=True, slots=True)
class AsChoice:
    """Replaces a task with judged responses, ``meta["responses"]``, by choices of the best of ``n``.

    Each choice has one of the responses of the highest reward and ``n - 1`` of lower ones, so that it has one right
    answer; every response of the highest reward makes one, as long as lower ones are left for it. The letter of the
    right one is the reference, and the verifier ``choice`` judges: no letter, or several, is wrong.

    Args:
        n: responses to choose from.
        shuffled: their order is drawn; else the best comes first.
        template: with ``{question}`` and ``{responses}``.

    Raises:
        UsageError: fewer than two responses, or more than there are letters.
    """

    n: int = 2
    shuffled: bool = True
    template: str = TEMPLATE

    def __post_init__(self) -> None:
        if not 2 <= self.n <= len(LETTERS):
            raise UsageError(f"S045: a choice is of 2 to {len(LETTERS)} responses, not {self.n}")

    def check(self, tasks: Sequence[Task]) -> None:
        """Raise UsageError where no task has judged responses."""
        if not any(task.meta.get("responses") for task in tasks):
            raise UsageError(
                'S045 needs preferences; name a file of them with --seeds "recorded(path=preferences.jsonl)": rows of '
                "prompt, chosen and rejected, or of prompt and responses with rewards"
            )

    def __call__(self, task: Task, here: Here) -> list[Task] | Dropped:
        rated = [r for r in task.meta.get("responses", ()) if r.get("reward") is not None]
        most = max((float(r["reward"]) for r in rated), default=0.0)
        best = [str(r["text"]) for r in rated if float(r["reward"]) == most]
        worse = [str(r["text"]) for r in rated if float(r["reward"]) < most]
        size = self.n - 1
        made = [
            self._choice(task, k, [text, *worse[k * size : (k + 1) * size]], here)
            for k, text in enumerate(best)
            if (k + 1) * size <= len(worse)
        ]
        return made or Dropped("no response that is better than enough others")

    def _choice(self, task: Task, number: int, texts: Sequence[str], here: Here) -> Task:
        order = here.rng.permutation(len(texts)).tolist() if self.shuffled else list(range(len(texts)))
        shown = "\n\n".join(f"Response {LETTERS[at]}:\n{texts[k]}" for at, k in enumerate(order))
        labels = {LETTERS[at]: f"response {LETTERS[at]}" for at in range(len(texts))}
        meta = {"order": order}
        made = child(
            task,
            "choice",
            number,
            prompt=filled(self.template, question=task.question, responses=shown),
            reference={"answer": LETTERS[order.index(0)], "options": labels},
            kind="choice",
            meta=meta,
        )
        kept = {name: value for name, value in made.meta.items() if name != "responses"}
        return Task(made.id, made.prompt, made.reference, made.kind, meta=kept)


@paper(
    "S045",
    "VMR",
    arxiv="2511.02463",
    seams=["tasks", "verify"],
    essentials={
        "a preferred and a dispreferred answer become a choice": "test_a_preference_becomes_a_choice",
        "a fair coin decides the order": "test_a_fair_coin_decides_the_order",
        "a rule grades the letter; none, or both, is wrong": "test_no_letter_or_both_is_wrong",
        "one right and several wrong ones to choose from": "test_one_of_several",
        "it acts in the command, and in training": "test_choices_are_made_and_trained_on",
        "what is learned from choices shows in open answers": "test_open_answers_get_better_by_a_fair_order",
    },
    choices=(
        "the words of the prompt; the letter stands in a box, or in the last sentence",
        "of several responses of the highest reward each makes a choice, with worse ones that no other has",
        "the training is any method's on the file of choices: GRPO in the paper, which states no constants",
    ),
)
def vmr(n: int = 2, shuffled: bool = True, template: str = TEMPLATE) -> Pipeline:
    """Choices from preferences: ``assay tasks make S045 --seeds "recorded(path=preferences.jsonl)"``.

        r = 1 if the letter in the response names the preferred answer, else 0;   no letter, or both: 0

    Nobody is asked. The policy that learns from the choices is then used as a generator, on the open questions.

    Args:
        n, shuffled, template: see :class:`AsChoice`.

    Source: "Verifiable Multiple-choice Reformulation" (arXiv 2511.02463).
    """
    return Pipeline("S045", [("choice", AsChoice(n, shuffled, template))])


claims(
    Claim(
        paper="S045",
        text="Learning which of two answers is the better one makes open answers better where a coin decides their "
        "order than where the better one always comes first, whose place is learned then.",
        setting="paired_answers",
        arms={
            "coin": {"name": "S045", "options": {"shuffled": True}},
            "first": {"name": "S045", "options": {"shuffled": False}},
        },
        better="coin",
        baseline="first",
        measure="open",
        sweep={"lr": (0.3, 1.0, 3.0)},
        evidence="mechanism",
    )
)
