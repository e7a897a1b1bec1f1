"""The loop with a plan that stays in a file, failures that are tried again, and an end that has to be earned."""

from __future__ import annotations

from typing import Any

from assay.rollout.turns.harness.programs.chat import Spent, ask, given
from assay.rollout.turns.harness.programs.desk import BUSY, Desk
from assay.rollout.turns.harness.programs.react import called

ASKED = """{prompt}

The folder holds:
{listing}

First write a plan: the files to leave, and a step a line. Call no tools yet."""
GO = "The plan is in {file}. Follow it with the tools. When all is done, say what you did without calling any."
PLAN = ".plan.md"
TRIES = 4
"""Times that a request is made which the service is too busy for."""
FAILED = "\n\nThis failed. Read what is wrong and mend it before you go on. The plan:\n{plan}"
NOT_YET = {
    "failed": "The last call failed, and nothing was done about it. Mend it, or say why it cannot be mended.",
    "idle": "No file has changed yet. Do the work with the tools, or say why it cannot be done.",
}


class Worker:
    """Makes calls, tries again what was busy, and knows how the last one went."""

    def __init__(self, desk: Desk):
        self.desk, self.start = desk, desk.space.digests()
        self.well = True

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        for _ in range(TRIES):
            text, self.well = self.desk.call(name, arguments)
            if not text.startswith(f"error: {BUSY} "):
                break
        plan = self.desk.space.files.get(PLAN, b"").decode("utf-8", "replace")
        return text if self.well else text + FAILED.format(plan=plan)

    def doubt(self) -> str:
        """Return why it cannot be over yet; empty if it can."""
        now = {name: digest for name, digest in self.desk.space.digests().items() if name != PLAN}
        return NOT_YET["failed"] if not self.well else NOT_YET["idle"] if now == self.start else ""


def main() -> None:
    task, desk = given(), Desk()
    worker = Worker(desk)
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": ASKED.format(prompt=task["prompt"], listing=desk.listing())}
    ]
    try:
        plan = ask(messages, desk.tools)
        desk.write(PLAN, plan["content"] or "")
        messages += [plan, {"role": "user", "content": GO.format(file=PLAN)}]
        doubted = False
        while True:
            message = ask(messages, desk.tools)
            messages.append(message)
            calls = called(message)
            for id, name, arguments in calls:
                text = worker.call(name, arguments)
                messages.append({"role": "tool", "tool_call_id": id, "name": name, "content": text})
            if not calls:
                doubt = "" if doubted else worker.doubt()
                if not doubt:
                    break
                doubted = True
                messages.append({"role": "user", "content": doubt})
        print(message["content"] or "")
    except Spent:
        return
    finally:
        (desk.folder / PLAN).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
