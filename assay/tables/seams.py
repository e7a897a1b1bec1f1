"""``docs/seams.md``, written by ``make docs``: every seam, what a part of it is called with, and one that works."""

from __future__ import annotations

from assay.registry import PACKAGES
from assay.tables.starts import STARTS, started, used

ABOUT = {
    "tasks": """What could be asked? `source[i]` is the i-th task, the same on every machine and in any order of
access, so that a stream's position is one number; `size` says how many there are, `None` for no end. A `Task` has
an `id`, a `prompt`, and what its verifier needs: `reference`, `kind`, `meta`; a worked `solution` makes a warm-up
possible.""",
    "curriculum": """What is asked now, and how often? Made with the run's `stream` of training tasks, `prompts`
and `group`. `next(step)` returns asks, a task and a number of responses each; `observe(groups)` is told how they
were judged. What it remembers goes through `state_dict`, so that a resumed run goes on bit for bit.""",
    "rollout": """How does a response come about? `collect(asks, engine, rng)` returns a group of unjudged
episodes per ask, in order, asking the engine as often as it needs to. Every draw comes from `rng`. One that plays
in an environment has `play` too, by which held-out tasks are measured in the same way.""",
    "verify": """Is it right? Called with a task and a response, returns a `Verdict`: right, wrong with a reason,
partly right, or an abstention where nobody can tell (no reference, a tool that is missing): that is no wrong
answer, and nothing is learned from it.""",
    "reward": """What is a response worth? Called with a judged batch of N responses, returns a `Reward`: values
`(N,)`, which of them are known, perhaps values of tokens `(N, T)` and terms by name. A plain function of task and
response does too, `{function = "file.py:name"}`.""",
    "credit": """Which tokens earned it? Called with a batch with rewards, returns advantages `(N, T)`.
`batch.group` says which responses are compared, `batch.active` which count; `needs` names signals that it reads
from `batch.signals`.""",
    "select": """Which samples count? Called with a batch with rewards, returns a weight per response `(N,)`, 0
for none.""",
    "objective": """What is minimised? Called with a batch with log-probabilities of the policy, returns a `Loss`.
Most are a surrogate of ratio and advantage `(N, T)`: aggregation over tokens, clipping counts and a penalty to
the reference come from `PolicyLoss`.""",
    "inference": """What do we do at test time? A strategy is called with tasks, an engine, a budget and a
generator, and returns an `Answer` each, with all it was made from and what it cost. `Meter` keeps to the budget
and counts.""",
    "scorer": """How good is a response thought to be, without its reference? `score(pairs, engine, rng)` returns
a `Score` each, larger is better, `None` where it cannot tell. A plain function of task and response text does
too.""",
    "engine": """Who generates? `encode`, `encode_response`, `decode`, and `generate(requests)`, which returns
episodes with tokens and the log-probabilities they were drawn with, before truncation. In training it is made
with the `policy`; one that copies its weights has `follow` and `close`.""",
    "environment": """What does an action do? `tasks`, `reset`, `step`, `verdict`, `close`: one episode at a time.
What the policy causes is an observation, an exception is the world's own failure and abstains. `assay audit
--environment` finds out how far it can be trusted; [environments](environments.md) has the rest.""",
    "signal": """What can only a model tell? Computed once per step for all parts that name it in `needs`: called
with a batch and `Models` (policy, reference, their quantities), returns a tensor whose first dimension is N.""",
    "logger": """Where do metrics and rollouts go besides? It works in a thread of its own, and what fails in it
ends no run; [loggers](loggers.md) has those that there are.""",
    "callback": """What happens as the run goes on? Any of `on_start`, `on_rollouts`, `on_step`, `on_evaluation`,
`on_checkpoint`, `on_end`; `run.stop(reason)` ends a stage. See [callbacks](loggers.md#callbacks).""",
}
"""What a part of each seam is asked, in Markdown."""


def page() -> str:
    """Return the page."""
    out = [
        "# Seams, and a part of your own in each",
        "",
        "A part is a class or a function that a recipe names: one of assay's (`assay parts SEAM` lists them),",
        "`file.py:Name`, or one that an installed package registers by an entry point of the group `assay.parts`. Its",
        "options are the parameters of its constructor; a recipe gives them in a table, where types are checked:",
        '`credit = {name = "my_credit.py:MyCredit", scale = 2.0}`.',
        "",
        "`assay new SEAM NAME` writes the files below, a part that works and its test, to begin with. They are run as",
        "they stand by assay's own tests. `make docs` writes this page.",
    ]
    for seam in PACKAGES:
        name = f"my_{seam}"
        code, test = started(seam, name)
        out += [
            "",
            f"## {seam}",
            "",
            ABOUT[seam],
            "",
            "```sh",
            f"assay new {seam} {name}",
            f"assay {used(seam, name)}",
            "```",
        ]
        out += ["", f"`{name}.py`:", "", "```python", code.rstrip(), "```"]
        out += ["", f"`test_{name}.py`:", "", "```python", test.rstrip(), "```"]
    return "\n".join(out) + "\n"


assert ABOUT.keys() == STARTS.keys()

if __name__ == "__main__":
    print(page(), end="")
