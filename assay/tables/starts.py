"""A part of one's own to begin with, by seam: a file that works, and its test."""

from __future__ import annotations

from dataclasses import dataclass

from assay.errors import UsageError, nearest

BATCH = '''
import numpy as np
import torch

from assay import Ask, Batch, Episode, Group, Task, Verdict
from FILE import CLASS


def batch(rewards):
    """A group of one-token responses with these rewards."""
    one = {"prompt": np.zeros(1, int), "tokens": np.ones(1, int), "mask": np.ones(1, bool)}
    episodes = [Episode(**one, logprobs=np.zeros(1, np.float32), text="7", stop="eos") for _ in rewards]
    verdicts = [Verdict(r, r == 1) for r in rewards]
    made = Batch.from_groups([Group(Ask(Task("t", "3+4="), len(rewards)), tuple(episodes), tuple(verdicts))])
    made.rewards = torch.tensor(rewards)
    return made
'''


@dataclass(frozen=True, slots=True)
class Start:
    """What a new part is called with, where a recipe names it, its code and its test."""

    key: str
    code: str
    test: str


STARTS = {
    "credit": Start(
        "method.credit",
        '''
from dataclasses import dataclass

from assay import Batch
from assay.ops import broadcast, group_mean, outcome


@dataclass
class CLASS:
    """A_it = scale (R_i - mean of its group): which tokens earned the reward?

    Args:
        scale: above 0.
    """

    scale: float = 1.0

    group_relative = True

    def __call__(self, batch: Batch):
        rewards = outcome(batch)  # (N,), one number a response; only batch.active ones count
        return broadcast(self.scale * (rewards - group_mean(rewards, batch.group, batch.active)), batch)  # (N, T)
''',
        BATCH
        + """

def test_by_hand():
    assert CLASS(scale=2.0)(batch([1.0, 0.0, 0.0, 0.0]))[:, 0].tolist() == [1.5, -0.5, -0.5, -0.5]
""",
    ),
    "select": Start(
        "method.select",
        '''
from dataclasses import dataclass

import torch

from assay import Batch


@dataclass
class CLASS:
    """Weight 1 for responses of reward ``least`` or more, 0 for others: which samples count?

    Args:
        least: lowest reward that is learned from.
    """

    least: float = 0.5

    def __call__(self, batch: Batch):
        return torch.where(batch.rewards >= self.least, 1.0, 0.0)  # (N,)
''',
        BATCH
        + """

def test_by_hand():
    assert CLASS(least=0.5)(batch([1.0, 0.2, 0.5])).tolist() == [1.0, 0.0, 1.0]
""",
    ),
    "reward": Start(
        "method.reward.name",
        '''
from dataclasses import dataclass

import torch

from assay import Batch, Reward


@dataclass
class CLASS:
    """The verdict's score, less ``price`` for each character of the response: what is a response worth?

    Args:
        price: of a character.
    """

    price: float = 0.01

    def __call__(self, batch: Batch) -> Reward:
        scores = [v.score - self.price * len(e.text) for v, e in zip(batch.verdicts, batch.episodes)]
        return Reward(torch.tensor(scores, dtype=batch.rewards.dtype))
''',
        BATCH
        + """

def test_by_hand():
    assert CLASS(price=0.25)(batch([1.0, 0.0])).values.tolist() == [0.75, -0.25]
""",
    ),
    "objective": Start(
        "method.objective",
        '''
from dataclasses import dataclass

from assay import Batch
from assay.objectives.policy_loss import PolicyLoss


@dataclass(frozen=True)
class CLASS(PolicyLoss):
    """l_it = -min(rho_it, most) A_it, rho the ratio to the policy that sampled: what is minimised?

    Args:
        most: highest ratio.
    """

    most: float = 2.0

    def surrogate(self, ratio, advantages, batch: Batch):
        return -ratio.clamp(max=self.most) * advantages  # (N, T)
''',
        """
import torch

from FILE import CLASS


def test_by_hand():
    found = CLASS(most=2.0).surrogate(torch.tensor([0.5, 3.0]), torch.tensor([1.0, -1.0]), None)
    assert found.tolist() == [-0.5, 2.0]
""",
    ),
    "curriculum": Start(
        "method.curriculum",
        '''
class CLASS:
    """As many responses to hard tasks as to two others: what is asked, and how often?

    Args:
        stream, prompts, group: given by the run: next tasks, tasks a step, responses to each.
        length: characters from which on a task is hard.
    """

    def __init__(self, stream, prompts: int, group: int, length: int = 8):
        self.stream, self.prompts, self.group, self.length = stream, prompts, group, length

    def next(self, step: int):
        from assay import Ask

        tasks = self.stream.next(self.prompts)
        return [Ask(task, self.group * (2 if len(task.question) >= self.length else 1)) for task in tasks]

    def observe(self, groups):
        """Takes note of the judged groups of a step."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass
''',
        """
from assay import Task
from FILE import CLASS


class Stream:
    def next(self, n):
        return [Task("a", "1+2="), Task("b", "11+22+33=")][:n]


def test_by_hand():
    assert [ask.n for ask in CLASS(Stream(), prompts=2, group=4).next(0)] == [4, 8]
""",
    ),
    "tasks": Start(
        "tasks.source.name",
        '''
from assay import Task


class CLASS:
    """Sums of two numbers below ``below``: source[i] is the i-th task, on every machine.

    Args:
        below: above 0.
    """

    def __init__(self, below: int = 10):
        self.below = below

    @property
    def size(self):
        return self.below**2  # or None for a source without an end

    def __getitem__(self, index: int) -> Task:
        a, b = divmod(index, self.below)
        answer = str(a + b)
        return Task(f"sum/{index}", f"{a}+{b}=", reference=answer, kind="exact", solution=answer)
''',
        """
from FILE import CLASS


def test_by_hand():
    assert CLASS(below=10).size == 100
    assert (CLASS(below=10)[34].prompt, CLASS(below=10)[34].reference) == ("3+4=", "7")
""",
    ),
    "verify": Start(
        "tasks.verify",
        '''
from dataclasses import dataclass

from assay import Task, Verdict


@dataclass
class CLASS:
    """Right iff the response is the reference, spaces around it apart.

    Args:
        ignore_case: whether small and capital letters are the same.
    """

    ignore_case: bool = True

    def __call__(self, task: Task, response: str) -> Verdict:
        if task.reference is None:
            return Verdict.abstain("no reference to compare with")  # that nobody could judge is no wrong answer
        a, b = response.strip(), str(task.reference).strip()
        same = a.lower() == b.lower() if self.ignore_case else a == b
        return Verdict.right() if same else Verdict.wrong(f"{a!r} is not {b!r}")
''',
        """
from assay import Task
from FILE import CLASS


def test_by_hand():
    task = Task("t", "capital of France?", reference="Paris")
    assert CLASS()(task, " paris ").passed is True
    assert CLASS(ignore_case=False)(task, "paris").passed is False
    assert CLASS()(Task("t", "?"), "paris").passed is None
""",
    ),
}
"""What ``assay new`` can begin; parts of other seams go by ``file.py:Name`` alike."""


def started(seam: str, name: str) -> tuple[str, str]:
    """Return the code of a new part and of its test.

    Raises:
        UsageError: no part of this seam can be begun so, or the name is no name of a Python file.
    """
    if seam not in STARTS:
        raise UsageError(f"a part of {seam!r} cannot be begun{nearest(seam, STARTS)}")
    if not name.isidentifier() or name != name.lower():
        raise UsageError(f"{name!r} is no name for a part: small letters, digits and _ as in my_{seam}")
    start, made = STARTS[seam], class_of(name)
    code = f'"""The {seam} {name}: `{start.key}={name}.py:{made}` on the command line or in a recipe."""\n{start.code}'
    test = f'"""The {seam} {name} by numbers worked by hand."""\n{start.test}'
    return code.replace("CLASS", made), test.replace("CLASS", made).replace("FILE", name)


def class_of(name: str) -> str:
    """Return the name of a part's class."""
    return "".join(word.capitalize() for word in name.split("_"))
