"""A full RL step of many turns, of assay against TRL's GRPOTrainer with an ``environment_factory`` on the same work.

Tasks times responses times turns of 128 sampled tokens, each answered by 64 tokens of a tool. Both sides as in
``step_vs_trl.py``: the same weights, prompts, sampling, reward, optimiser, in processes of their own that take turns,
float32 on the CPU. The model has random weights that never end a turn and write no tool calls: on either side every
turn but the last is taken as a call. Printed besides: what assay's driver of turns costs by itself, that is a step's
rollout with an engine that answers at once, beside a whole step.

    python benchmarks/turns_vs_trl.py [--cases four eight] [--steps 12]

Needs the extra ``bench`` (TRL). The cases ``small...`` are of 4 tasks x 4 responses, ``half-eight`` of 8 x 8. On a
machine that others use too, one thread each tells most: ``OMP_NUM_THREADS=1 taskset -c 1``. Exits 1 if a ratio is too
low.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import step_vs_trl
from step_vs_trl import Case, Watch, main, tasks, train_trl, wait_for_go

from assay.engines.base import Request
from assay.environments.tools import ToolEnvironment, tool
from assay.types import Episode, Task, Verdict

CHAT = (
    "{% for m in messages %}{{ m['role'][0] }}:{{ m['content'] }}{% for c in m['tool_calls'] %}{{ c['function'] }}"
    "{% endfor %}<eos>{% endfor %}{% if add_generation_prompt %}a:{% endif %}"
)
SEEN = "what is to be seen here is a line of text, and then some more."[:58]
"""With what the template puts around it, 64 tokens: each character is one."""
NANO = {"hidden": 192, "layers": 4, "heads": 6, "context": 2048}


@dataclass(frozen=True)
class Turns(Case):
    """``tokens`` are of a turn."""

    turns: int = 4


CASES = {
    "four": Turns(NANO, 16, 8, 128, 2.0, turns=4),
    "eight": Turns(NANO, 16, 8, 128, 3.0, turns=8),
    "half-eight": Turns(NANO, 8, 8, 128, 3.0, turns=8),
    "small-four": Turns(NANO, 4, 4, 128, 2.0, turns=4),
    "small-eight": Turns(NANO, 4, 4, 128, 3.0, turns=8),
}


class Look(ToolEnvironment):
    """assay's: whatever is said is answered."""

    def begin(self, task: Task, seed: int) -> None:
        return None

    @tool
    def look(self) -> str:
        "Look around."
        return SEEN

    def said(self, text: str) -> str:
        return self.look()

    def verdict(self) -> Verdict:
        return Verdict.right()


class Room:
    """TRL's."""

    def reset(self, **_: Any) -> str | None:
        return None

    def look(self) -> str:
        """Look around."""
        return SEEN


def prepare(case: Turns, folder: Path) -> None:
    """Save weights whose end token is never drawn, and a chat template."""
    import torch

    from assay.policies.causal_lm import CausalLM
    from assay.policies.loading import ModelConfig

    policy = CausalLM.load(ModelConfig.model_validate({"nano": case.model}))
    with torch.no_grad():
        # A direction that every token has, and the end token the other way, as the embeddings are the output layer.
        embeddings = policy.model.get_input_embeddings().weight
        embeddings[:, 0] = 3.0
        embeddings[policy.tokenizer.eos_token_id, 0] = -3.0
        for layer in policy.model.base_model.layers:
            layer.self_attn.o_proj.weight[0] = layer.mlp.down_proj.weight[0] = 0.0
    policy.tokenizer.chat_template = CHAT
    policy.save(folder)


def reward(completions: list, **_: object) -> list[float]:
    """As in ``step_vs_trl.py``, over all that was said."""
    texts = [c if isinstance(c, str) else "".join(m.get("content") or "" for m in c) for c in completions]
    return step_vs_trl.reward(texts)


def run_assay(case: Turns, folder: Path) -> None:
    """Take one step of assay's loop for each line ``go``."""
    from assay.config import load_config
    from assay.console import Reporter
    from assay.rewards.function import FunctionReward
    from assay.training.build import build_trainer

    config = load_config(
        {
            "model": {"source": str(folder)},
            "tasks": {"eval_size": 1},
            "method": {"rollout": {"name": "multi_turn", "environment": f"{__file__}:Look", "turns": case.turns}},
            "rollout": {"prompts": case.prompts, "group": case.group, "max_tokens": case.tokens},
            "train": {"lr": 1e-6},
            "run": {"dir": tempfile.mkdtemp(), "rollouts_every": 10**9, "tensorboard": False},
        }
    )
    trainer = build_trainer(config, Reporter(quiet=True), tasks=tasks(case, folder), reward=FunctionReward(reward))
    trainer.start_rl()
    while True:
        wait_for_go()
        watch = Watch()
        metrics = trainer.rl_step()
        watch.report(metrics["length/mean"])


def run_trl(case: Turns, folder: Path) -> None:
    """Take one step of GRPOTrainer for each line ``go``."""
    from transformers import AutoTokenizer
    from trl.trainer import grpo_trainer

    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    tokenizer.response_schema = {"type": "object"}  # what it would ask for; turns are read below

    def called(tokenizer: Any, ids: list[int], **_: Any) -> dict[str, Any]:
        call = {"type": "function", "function": {"name": "look", "arguments": {}}}
        return {"role": "assistant", "content": tokenizer.decode(ids), "tool_calls": [call]}

    grpo_trainer.parse_response = called
    options = {
        "max_completion_length": case.turns * (case.tokens + 64),
        "max_tool_calling_iterations": case.turns - 1,
        "generation_kwargs": {"max_new_tokens": case.tokens},
    }
    prompts = [[{"role": "user", "content": t.prompt}] for t in tasks(case, folder)]
    train_trl(case, folder, tokenizer, prompts, reward, options, environment_factory=Room)


class Instant:
    """An engine that answers at once, with random tokens."""

    def __init__(self, engine: Any):
        import numpy as np

        self.engine, self.rng = engine, np.random.default_rng(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        import numpy as np

        def answered(request: Request) -> Episode:
            n = request.sampling.max_tokens
            ids = self.rng.integers(4, 90, n)
            zeros = np.zeros(n, dtype=np.float32)
            return Episode(
                self.engine.encode(request.prompt), ids, zeros == 0, zeros, self.decode(ids), "length", zeros
            )

        return [[answered(request)] for request in requests]


def driver(case: Turns) -> float:
    """Return the seconds that a step's rollout takes without a model."""
    import numpy as np

    from assay.engines.base import Sampling
    from assay.engines.hf import HFEngine
    from assay.policies.causal_lm import CausalLM
    from assay.policies.loading import ModelConfig
    from assay.rollout.turns.multi_turn import MultiTurn
    from assay.types import Ask

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        prepare(case, folder)
        policy = CausalLM.load(ModelConfig.model_validate({"source": str(folder)}))
        asks = [Ask(t, case.group) for t in tasks(case, folder)[: case.prompts]]
    rollout = MultiTurn(f"{__file__}:Look", Sampling(case.tokens), turns=case.turns)
    times = []
    for _ in range(5):
        start = time.process_time()
        rollout.collect(asks, Instant(HFEngine(policy)), np.random.default_rng(0))
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main(CASES, __doc__, __file__, {"assay": run_assay, "trl": run_trl}, prepare, driver)
