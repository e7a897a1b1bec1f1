"""Parts of one's own that say how responses come about, and what is known of them."""

from __future__ import annotations

from assay.tables.starts.base import BATCH, Start

ENGINE = '''
import numpy as np

from assay import Episode, Task
from FILE import CLASS


class Scripted:
    """An engine that says one text after the other, a token a character."""

    def __init__(self, *texts):
        self.texts = iter(texts)

    def encode(self, prompt):
        return np.array([ord(c) for c in prompt])

    def generate(self, requests):
        return [[self.say(request, next(self.texts)) for _ in range(request.n)] for request in requests]

    def say(self, request, text):
        tokens = self.encode(text)
        logprobs = -0.5 * np.ones(len(tokens), np.float32)
        return Episode(self.encode(request.prompt), tokens, np.ones(len(tokens), bool), logprobs, text, "eos")
'''

ANSWERING = {
    "rollout": Start(
        "train ... method.rollout=PART",
        '''
from assay import Group
from assay.engines.base import Request


class CLASS:
    """Draws ``spare`` more responses than are wanted and keeps the shortest: how does a response come about?

    Args:
        sampling: given by the run: how tokens are drawn.
        spare: responses that are left out.
    """

    def __init__(self, sampling, spare: int = 1):
        self.sampling, self.spare = sampling, spare

    def collect(self, asks, engine, rng):
        seeds = [int(seed) for seed in rng.integers(2**63, size=len(asks))]  # every draw comes from rng
        wanted = [Request(a.task.prompt, a.n + self.spare, self.sampling, s) for a, s in zip(asks, seeds)]
        made = [sorted(episodes, key=lambda e: len(e.tokens)) for episodes in engine.generate(wanted)]
        return [Group(ask, tuple(episodes[: ask.n])) for ask, episodes in zip(asks, made)]
''',
        ENGINE
        + """

def test_by_hand():
    from assay import Ask
    from assay.engines.base import Sampling

    made = CLASS(Sampling(), spare=1).collect(
        [Ask(Task("t", "3+4="), 2)], Scripted("seven", "7", "07"), np.random.default_rng(0)
    )
    assert [e.text for e in made[0].episodes] == ["7", "07"]
""",
    ),
    "environment": Start(
        "train ... tasks.source.name=environment tasks.source.environment=PART method.rollout.name=multi_turn "
        "method.rollout.environment=PART",
        '''
import re

from assay import Task, Verdict
from assay.environments.base import Observation, Step
from assay.types import Message


class CLASS:
    """Counting on: a number is shown, and every turn has to say the next: what does an action do?

    Args:
        turns: of an episode.
        most: numbers to begin with are 1 to this.
    """

    def __init__(self, turns: int = 2, most: int = 50):
        self.turns, self.most, self.shown = turns, most, None

    def tasks(self):
        return Tasks(self.most)

    def reset(self, task, seed):
        self.shown, self.done, self.wrong = int(task.reference), 0, False
        return self.seen()

    def step(self, action):
        if self.shown is None or self.wrong or self.done == self.turns:
            raise RuntimeError("no episode is under way; call reset first")
        said = re.findall(r"[0-9]+", action.text)
        self.wrong = not said or int(said[-1]) != self.shown + 1
        self.shown, self.done = self.shown + 1, self.done + 1
        # What a policy causes is an observation; an exception is the world's own failure, and no wrong answer.
        return Step(self.seen(), terminated=self.wrong or self.done == self.turns, valid=bool(said))

    def seen(self):
        return Observation((Message(role="user", content=f"{self.shown}+1="),))

    def verdict(self):
        return Verdict.wrong() if self.wrong or self.done < self.turns else Verdict.right()

    def close(self):
        self.shown = None


class Tasks:
    def __init__(self, size: int):
        self.size = size

    def __getitem__(self, index: int) -> Task:
        return Task(f"count/{index}", f"{index + 1}+1=", reference=index + 1, kind="none")
''',
        """
from assay.environments.base import Action
from FILE import CLASS


def played(*turns):
    world = CLASS(turns=2)
    world.reset(world.tasks()[3], seed=0)
    steps = [world.step(Action(text)) for text in turns]
    return [step.observation.messages[0]["content"] for step in steps], steps[-1].terminated, world.verdict().passed


def test_by_hand():
    assert played("5", "it is 6") == (["5+1=", "6+1="], True, True)
    assert played("6") == (["5+1="], True, False)
    assert played("5")[1:] == (False, False)
""",
    ),
    "inference": Start(
        "eval RUN --budgets 4 --strategy PART",
        '''
from assay.engines.base import Sampling
from assay.inference.meter import Meter


class CLASS:
    """The shortest of as many responses as the budget allows: what do we do at test time?

    Args:
        sampling: how tokens are drawn; of the run, unless given.
    """

    def __init__(self, sampling: Sampling = Sampling()):
        self.sampling = sampling

    def __call__(self, tasks, engine, budget, rng):
        meter = Meter(tasks, engine, budget, rng, self.sampling)  # keeps to the budget, and counts tokens
        made = meter.fill()
        best = [min(episodes, key=lambda e: len(e.tokens)) for episodes in made]
        return [meter.answer(i, episode.text, made[i]) for i, episode in enumerate(best)]
''',
        ENGINE
        + """

def test_by_hand():
    [answer] = CLASS()([Task("t", "3+4=")], Scripted("seven", "7", "07"), 3, np.random.default_rng(0))
    assert (answer.text, answer.tokens, len(answer.episodes)) == ("7", 8, 3)
""",
    ),
    "scorer": Start(
        'eval RUN --budgets 4 --strategy "best_of_n(scorer=PART)"',
        '''
from assay.inference.scoring.base import Score, mean_logprob


class CLASS:
    """The mean log-probability of a token, less ``price`` for each: how good is a response thought to be?

    Args:
        price: of a token.
    """

    def __init__(self, price: float = 0.01):
        self.price = price

    def score(self, pairs, engine, rng):
        found = [(mean_logprob(episode), len(episode.tokens)) for _, episode in pairs]
        # None where it cannot be told, which is no low score.
        return [Score(None if value is None else value - self.price * length) for value, length in found]

    def most(self, task, response, engine):
        return 0  # tokens that scoring a response takes: no model reads it
''',
        ENGINE
        + """

def test_by_hand():
    from assay.engines.base import Request, Sampling

    engine = Scripted("seven", "7")
    made = engine.generate([Request("3+4=", 2, Sampling(), 0)])[0]
    found = CLASS(price=0.25).score([(Task("t", "3+4="), e) for e in made], engine, None)
    assert [score.value for score in found] == [-1.75, -0.75]
""",
    ),
    "engine": Start(
        "train ... engine=PART",
        '''
import time

from assay.registry import build


class CLASS:
    """The engine ``hf``, which also counts what it does: who generates?

    Args:
        policy, max_rows: given by the run: the model that is trained, and responses decoded together.
    """

    def __init__(self, policy, max_rows: int = 1024):
        self.inner = build("engine", "hf", policy=policy, max_rows=max_rows)
        self.tokens, self.seconds = 0, 0.0

    def __getattr__(self, name):
        if name == "inner":  # not made yet
            raise AttributeError(name)
        return getattr(self.inner, name)

    def encode(self, prompt):
        return self.inner.encode(prompt)

    def encode_response(self, text, end=True):
        return self.inner.encode_response(text, end)

    def decode(self, tokens):
        return self.inner.decode(tokens)

    def generate(self, requests):
        begun = time.perf_counter()
        made = self.inner.generate(requests)
        self.tokens += sum(len(e.tokens) for episodes in made for e in episodes)
        self.seconds += time.perf_counter() - begun
        return made
''',
        """
from assay.engines.base import Engine, Request, Sampling
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from FILE import CLASS


def test_by_hand():
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 32}
    engine = CLASS(CausalLM.load(ModelConfig(source="nano", nano=nano), 0))
    made = engine.generate([Request("3+4=", 3, Sampling(max_tokens=4), seed=0)])[0]
    assert engine.tokens == sum(len(e.tokens) for e in made) <= 12 and engine.seconds > 0
    assert isinstance(engine, Engine)
""",
    ),
    "signal": Start(
        "train ... method.credit=PART",
        '''
from dataclasses import dataclass

from assay import Batch
from assay.ops import broadcast, group_mean, outcome


@dataclass(frozen=True)
class CLASS:
    """How much surer of each token the policy is now than when it was drawn: what can only a model tell?

    ``Models.quantities`` has more: entropies, hidden states; of the reference policy too.
    """

    name: str = "CLASS"  # its key in batch.signals

    def __call__(self, batch: Batch, models):
        return models.quantities(batch, {"logprobs"})["logprobs"] - batch.logprobs  # (N, T)


class CLASSCredit:
    """A_it = (R_i - mean of its group) exp(signal_it): a part that reads the signal names it in ``needs``."""

    group_relative = True

    def __init__(self):
        self.needs = frozenset({CLASS()})

    def __call__(self, batch: Batch):
        rewards = outcome(batch)
        centred = broadcast(rewards - group_mean(rewards, batch.group, batch.active), batch)
        return centred * batch.signals["CLASS"].exp()
''',
        BATCH.replace("import CLASS", "import CLASS, CLASSCredit")
        + """

class Models:
    def quantities(self, batch, names):
        return {"logprobs": torch.log(torch.tensor([[2.0], [1.0]]))}


def test_by_hand():
    made = batch([1.0, 0.0])
    made.signals["CLASS"] = CLASS()(made, Models())
    assert torch.allclose(CLASSCredit()(made)[:, 0], torch.tensor([1.0, -0.5]))
""",
        suffix="Credit",
    ),
}
