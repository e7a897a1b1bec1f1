"""Parts of one's own that look on."""

from __future__ import annotations

from assay.tables.starts.base import Start

WATCHING = {
    "logger": Start(
        """train ... 'run.loggers=["PART"]'""",
        '''
class CLASS:
    """A file of lines in the run's folder: where do metrics and rollouts go besides?

    Args:
        rows: responses of a step in its table; 0 for no tables.
    """

    def __init__(self, rows: int = 4):
        self.rows = rows

    def start(self, about):  # about.id, about.name, about.folder, about.config, about.flat()
        self.file = open(about.folder / "CLASS.txt", "a")

    def metrics(self, stage, step, values):  # stage is warmup, rl or eval
        self.file.write(f"{stage} {step} {dict(values)}\\n")

    def table(self, name, step, rows):
        self.file.writelines(f"{name} {step} {row['reward']} {row['response']!r}\\n" for row in rows)

    def close(self):
        self.file.close()
''',
        """
import tempfile
from pathlib import Path

from assay.loggers.base import About
from FILE import CLASS


def test_by_hand():
    with tempfile.TemporaryDirectory() as folder:
        logger = CLASS()
        logger.start(About("1", Path(folder), {}))
        logger.metrics("rl", 3, {"loss": 0.5})
        logger.table("rollouts", 3, [{"reward": 1.0, "response": "7"}])
        logger.close()
        assert Path(folder, "CLASS.txt").read_text() == "rl 3 {'loss': 0.5}\\nrollouts 3 1.0 '7'\\n"
""",
    ),
    "callback": Start(
        """train ... 'run.callbacks=["PART"]'""",
        '''
from assay import Callback


class CLASS(Callback):
    """Ends RL once the mean reward was ``enough`` for ``steps`` steps in a row: what happens as the run goes on?

    Args:
        enough: mean reward.
        steps: in a row.
    """

    def __init__(self, enough: float = 0.9, steps: int = 3):
        self.enough, self.steps, self.reached = enough, steps, 0

    def on_step(self, run, metrics):
        reward = metrics.get("reward/mean", float("-inf"))
        self.reached = self.reached + 1 if reward >= self.enough else 0
        if self.reached >= self.steps:
            run.stop(f"the mean reward was {self.enough:g} or more for {self.steps} steps")
''',
        """
from FILE import CLASS


class Run:
    stopped = None

    def stop(self, reason):
        self.stopped = reason


def test_by_hand():
    callback, run = CLASS(enough=0.5, steps=2), Run()
    for reward in (0.5, 0.4, 0.6):
        callback.on_step(run, {"reward/mean": reward})
    assert run.stopped is None
    callback.on_step(run, {"reward/mean": 0.5})
    assert run.stopped == "the mean reward was 0.5 or more for 2 steps"
""",
    ),
}
