"""A world that goes wrong on demand, for tests of processes that host it: actions are words."""

import ctypes
import os
import sqlite3
import time
from pathlib import Path

from assay.environments.base import Observation, Step
from assay.tasks.listed import Listed
from assay.types import Message, Task, Verdict

TASKS = [Task(str(i), f"world {i}") for i in range(64)]


class World:
    """Adds up numbers in a database; ``once`` words go wrong only where their file is not there yet."""

    def __init__(self, latency: float = 0.0, folder: str = "", refuses: str = "") -> None:
        if refuses:
            raise RuntimeError(refuses)
        self.latency, self.folder = latency, folder

    def tasks(self):
        return Listed(TASKS)

    def reset(self, task, seed):
        if task.meta.get("reset") == "raise":
            raise OSError("no world")
        self.rows = sqlite3.connect(":memory:")
        self.rows.execute("create table rows (n int)")
        return Observation((Message(role="user", content=task.question),), state="0")

    def step(self, action):
        word, _, name = action.text.partition(" ")
        first = bool(name)
        if name:
            mark = Path(self.folder, name)
            first = not mark.exists()
            mark.touch()
        if first or not name:
            self.wrong(word)
        time.sleep(self.latency)
        print("printed")
        self.rows.execute("insert into rows values (?)", (len(word),))
        total = self.total()
        return Step(Observation((Message(role="user", content=str(total)),), state=str(total)), terminated=total > 20)

    def wrong(self, word):
        if word == "hang":
            time.sleep(1e6)
        if word == "freeze":  # with the lock that all threads need
            ctypes.PyDLL(None).sleep(1000)
        if word == "die":
            os._exit(3)
        if word == "kill":
            os.kill(os.getpid(), 9)
        if word == "raise":
            raise ValueError("broken")
        if word == "exit":
            raise SystemExit(0)
        if word == "odd":
            self.total = object

    def total(self):
        return self.rows.execute("select sum(n) from rows").fetchone()[0]

    def verdict(self):
        return Verdict(min(1.0, self.total() / 20), self.total() > 20)

    def snapshot(self):
        return self.rows.serialize()

    def restore(self, snapshot):
        self.rows.deserialize(snapshot)

    def close(self):
        pass


class Odd(World):
    def step(self, action):
        return {"observation": "none"}
