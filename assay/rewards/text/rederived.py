"""A reward as it is, and beside it what somebody who reads the thought alone would answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from assay.batch import Batch
from assay.engines.asking import ask, escaped, filled
from assay.engines.base import Sampling
from assay.media import MARK
from assay.registry import part
from assay.rewards.shaping.monitored import Monitored
from assay.tasks.making.scored_thoughts import thought_of
from assay.types import Task
from assay.verify.answer.options import listed
from assay.verify.choice.verifier import Choice

TEMPLATE = """Somebody thought about this question:
"{question}"

These are the thoughts, and all that you know:
"{response}"

Which option do they lead to? Reply with its letter, and nothing else."""
CHOICE = Choice()


@part("reward", "rederived")
@dataclass(slots=True)
class Rederived(Monitored):
    """R_i is another reward's; every ``every`` steps a judge, who sees neither pictures nor answers, says to which
    option each thought leads.

    Terms, in no reward and no gradient, of the responses to whose thoughts the judge names an option
    (``cacr_told``): ``cacr``, it is the one that was answered (the CoT and answer consistency rate is ``reward/cacr``
    by ``reward/cacr_told`` in the log); ``cr_wa``, it is right and the answer is not; ``wr_ca``, the answer is right
    and it is not.

    Args:
        reward, judge, every, max_tokens: see :class:`~assay.rewards.shaping.monitored.Monitored`.
        template: with ``{question}`` and ``{response}``, which is the thought; both are shown as JSON has texts.

    Source: ACRE (arXiv 2510.10104).
    """

    template: str = TEMPLATE

    def consistency(self, batch: Batch) -> dict[str, Float[Tensor, "N"]]:
        """Return the terms, see above."""
        pairs = list(zip(batch.tasks, (e.text for e in batch.episodes), strict=True))
        prompts = [
            filled(
                self.template,
                question=escaped(task.question.replace(MARK, "").strip()),
                response=escaped(thought_of(text)),
            )
            for task, text in pairs
        ]
        terms: dict[str, list[bool]] = {name: [] for name in ("cacr_told", "cacr", "cr_wa", "wr_ca")}
        for (task, text), reply in zip(pairs, ask(self.judge, prompts, Sampling(self.max_tokens, 0.0)), strict=True):
            led = None if reply.stop == "error" else chosen(task, reply.text)
            told, answer = led is not None, chosen(task, text)
            right, sound = answer is not None and good(task, answer), led is not None and good(task, led)
            terms["cacr_told"].append(told)
            terms["cacr"].append(told and led == answer)
            terms["cr_wa"].append(sound and not right)
            terms["wr_ca"].append(told and right and not sound)
        return {name: torch.tensor(values).to(batch.rewards) for name, values in terms.items()}


def chosen(task: Task, text: str) -> str | None:
    """Return the label of the option that a text chooses, ``None`` where it chooses none or several."""
    found = [label for label in listed(task.question) if CHOICE(replace(task, reference=label), text).passed]
    return found[0] if len(found) == 1 else None


def good(task: Task, label: str) -> bool:
    """Whether an option is right."""
    return bool(CHOICE(task, label).passed)
