"""A single shot: the model answers once, what it answers is done, and nothing is looked at."""

from __future__ import annotations

import re

from assay.rollout.turns.harness.programs.chat import Spent, ask, given
from assay.rollout.turns.harness.programs.desk import Desk

ASKED = """{prompt}

The folder holds:
{listing}

Answer once; nothing will be shown to you. Scripts of bash between ```bash and ``` are run in the folder, one after \
another.{service}"""
SERVICE = " Lines PATH FILE between ```get and ``` fetch a path of the service into a file; blocks are done in order."
BLOCK = re.compile(r"```(bash|sh|get)[ \t]*\n(.*?)```", re.DOTALL)


def main() -> None:
    task, desk = given(), Desk()
    prompt = ASKED.format(prompt=task["prompt"], listing=desk.listing(), service=SERVICE if desk.service else "")
    try:
        text = ask([{"role": "user", "content": prompt}])["content"] or ""
    except Spent:
        return
    for kind, body in BLOCK.findall(text):
        if kind != "get":
            desk.call("run", {"command": body})
            continue
        for line in body.splitlines():
            path, _, to = line.strip().partition(" ")
            if path:
                desk.call("get", {"path": path, "to": to.strip()})
    print(BLOCK.sub("", text).strip())


if __name__ == "__main__":
    main()
