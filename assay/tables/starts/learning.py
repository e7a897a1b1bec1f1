"""Parts of one's own that say what is asked, what is right, and what is learned from it."""

from __future__ import annotations

from assay.tables.starts.base import BATCH, Start

LEARNING = {
    "credit": Start(
        "train ... method.credit=PART",
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
        "train ... method.select=PART",
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
        "train ... method.reward.name=PART",
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
        "train ... method.objective=PART",
        '''
from dataclasses import dataclass

from assay.objectives.policy_loss import PolicyLoss, Ratios


@dataclass(frozen=True)
class CLASS(PolicyLoss):
    """l_it = -min(rho_it, most) A_it, rho the ratio to the policy that sampled: what is minimised?

    The options of PolicyLoss (aggregation, kl_weight, ...) are this one's too.

    Args:
        most: highest ratio.
    """

    most: float = 2.0

    def surrogate(self, r: Ratios):
        """Return l_it (N, T), and numbers for the log; r has logprobs, ratio, advantages, mask and the batch."""
        bounded = (r.ratio > self.most) & r.mask
        return -r.ratio.clamp(max=self.most) * r.advantages, {"bounded": bounded.sum() / r.mask.sum().clamp(min=1)}
''',
        """
from types import SimpleNamespace

import torch

from FILE import CLASS


def test_by_hand():
    ratio, advantages = torch.tensor([[0.5, 3.0]]), torch.tensor([[1.0, -1.0]])
    loss, said = CLASS(most=2.0).surrogate(SimpleNamespace(ratio=ratio, advantages=advantages, mask=ratio > 0))
    assert loss.tolist() == [[-0.5, 2.0]] and float(said["bounded"]) == 0.5
""",
    ),
    "curriculum": Start(
        "train ... method.curriculum=PART",
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
        "train ... tasks.source.name=PART",
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
        "train ... tasks.verify=PART",
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
