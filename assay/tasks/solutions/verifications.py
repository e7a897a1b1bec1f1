"""Tasks of judging solutions step by step, made from solutions that have been judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.errors import UsageError
from assay.types import Group, Task
from assay.verify.verification import TEMPLATE


@dataclass(frozen=True, slots=True)
class Verifications:
    """What a verifier is asked about a solution.

    Args:
        template: with ``{question}``, ``{steps}`` (numbered from 1; the response where it has none), ``{response}``
            (as it was written) and ``{count}`` (of the steps); other braces are written twice.

    Raises:
        UsageError: the template shows neither steps nor response, or does not fit.
    """

    template: str = TEMPLATE

    def __post_init__(self) -> None:
        if "one" not in self.prompt("what was asked", ["one", "two"], "one two"):
            raise UsageError("tasks of verifying: the template has to show {steps} or {response}")

    def prompt(self, question: str, steps: Sequence[str], response: str) -> str:
        """Return what is asked about a solution of some steps."""
        numbered = "\n".join(f"Step {k}: {s.strip()}" for k, s in enumerate(steps, 1)) or response
        try:
            return self.template.format(question=question, steps=numbered, response=response, count=len(steps))
        except (KeyError, IndexError, ValueError):
            raise UsageError(
                "tasks of verifying: the template may contain {question}, {steps}, {response} and {count}, and writes "
                "other braces twice"
            ) from None

    def tasks(self, groups: Sequence[Group], steps: Sequence[Sequence[Sequence[str]]]) -> list[Task]:
        """Return a task for each judged response on which the verifier did not abstain.

        Args:
            groups: judged.
            steps: of each response of each group.
        """
        out = []
        for group, of_group in zip(groups, steps, strict=True):
            for i, (episode, verdict, parts) in enumerate(zip(group.episodes, group.verdicts, of_group, strict=True)):
                if verdict.passed is None:
                    continue
                prompt = self.prompt(group.task.question, parts, episode.text)
                truth = {"right": verdict.passed, "steps": len(parts)}
                out.append(Task(f"{group.task.id}/verify-{i}", prompt, truth, "verification"))
        return out
