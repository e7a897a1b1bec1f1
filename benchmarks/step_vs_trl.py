"""A full RL step of assay against TRL's GRPOTrainer on the same work.

Same initial weights, prompts, group size, sampling, response limit, reward function, optimiser and number of optimiser
steps, both in float32 on the CPU. Each side lives in a process of its own; the two take steps in turn, so that a noisy
machine disturbs both alike. Where both do not fit in memory together, the processes themselves take turns, and each
counts the steps after its first. Printed per case: median seconds of each, and the median of the pairwise ratios,
of the clock and of processors' time, which other programs on the machine disturb less.

    python benchmarks/step_vs_trl.py [--cases a b c] [--steps 12]

Needs the extra ``bench`` (TRL); case c needs models/SmolLM2-135M-Instruct.Q4_1.gguf and the extra ``gguf``.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

GGUF = Path(__file__).parents[1] / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True)
class Case:
    """One workload: the model, prompts per step, responses per prompt, most new tokens, and the ratio to reach."""

    model: dict | str
    prompts: int
    group: int
    tokens: int
    goal: float
    style: str = "compact"
    alone: bool = False
    """Only one side is in memory at a time."""
    length: int = 0
    """Tokens that each prompt is filled up to with worked examples."""


CASES = {
    "a": Case({"hidden": 192, "layers": 4, "heads": 6}, 32, 8, 32, 1.5),
    "b": Case({"hidden": 128, "layers": 3, "heads": 4}, 64, 16, 8, 1.5),
    "c": Case(str(GGUF), 8, 8, 64, 1.3, "words", alone=True),
}


def reward(completions: list, **_: object) -> list[float]:
    """Something cheap that differs between responses: how many digits there are."""
    texts = [c if isinstance(c, str) else c[0]["content"] for c in completions]
    return [float(sum(x.isdigit() for x in t)) for t in texts]


def tasks(case: Case, folder: Path) -> list:
    from assay.tasks.arithmetic import Arithmetic

    source = Arithmetic(digits=2, min_digits=2, style=case.style)
    made = [source[i] for i in range(case.prompts * 64)]
    return [replace(t, prompt=filled(t.prompt, i, case, folder)) for i, t in enumerate(made)] if case.length else made


def filled(question: str, number: int, case: Case, folder: Path) -> str:
    """Return a question below as many worked examples, different for each number, as ``case.length`` tokens hold."""
    encode = tokenizer_of(folder)
    examples = (f"{a % 90 + 10}+{a * 7 % 89 + 10}={a % 90 + a * 7 % 89 + 20}\n" for a in range(number * 997, 10**9))
    text, left = question, case.length - encode(question)
    while left > 0:
        example = next(examples)
        fits = example[-left:]  # of the last one its end, so that all prompts are of one length
        text, left = fits + text, left - len(fits)
    return text


@functools.cache
def tokenizer_of(folder: Path) -> Callable[[str], int]:
    """Return what counts a prompt's tokens with its chat template; in the examples, each character is a token."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def count(text: str) -> int:
        if getattr(tokenizer, "chat_template", None) is None:
            return len(tokenizer(text)["input_ids"])
        messages = [{"role": "user", "content": text}]
        whole = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return len(tokenizer(whole, add_special_tokens=False)["input_ids"])

    return count


def prepare(case: Case, folder: Path) -> None:
    """Save the initial weights for both sides."""
    from assay.policies.causal_lm import CausalLM
    from assay.policies.loading import ModelConfig

    spec = {"nano": case.model} if isinstance(case.model, dict) else {"source": case.model}
    CausalLM.load(ModelConfig.model_validate(spec)).save(folder)


def wait_for_go() -> None:
    if sys.stdin.readline().strip() != "go":
        os._exit(0)


class Watch:
    """Seconds since it was made: of the clock, and of processors."""

    def __init__(self) -> None:
        self.start = time.perf_counter(), time.process_time()

    def report(self, tokens: float) -> None:
        """Tell them to whoever asked for the step."""
        seconds, work = time.perf_counter() - self.start[0], time.process_time() - self.start[1]
        print(json.dumps({"seconds": seconds, "work": work, "tokens": tokens}), flush=True)


def run_assay(case: Case, folder: Path) -> None:
    """Take one step of assay's loop for each line ``go``."""
    from assay.config import load_config
    from assay.console import Reporter
    from assay.rewards.function import FunctionReward
    from assay.training.build import build_trainer

    config = load_config(
        {
            "model": {"source": str(folder)},
            "tasks": {"eval_size": 1},
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


def run_trl(case: Case, folder: Path) -> None:
    """Take one step of GRPOTrainer for each line ``go``."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    chat = getattr(tokenizer, "chat_template", None) is not None
    prompts = [[{"role": "user", "content": t.prompt}] if chat else t.prompt for t in tasks(case, folder)]
    train_trl(case, folder, tokenizer, prompts, reward, {"max_completion_length": case.tokens})


def train_trl(
    case: Case,
    folder: Path,
    tokenizer: Any,
    prompts: list,
    reward: Callable[..., list[float]],
    options: Mapping[str, Any],
    **more: Any,
) -> None:
    """Have GRPOTrainer take steps; ``options`` are of its configuration, ``more`` of the trainer itself."""
    import transformers
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    lengths: list[float] = []

    def counted(completions: list, completion_ids: list, **columns: object) -> list[float]:
        lengths.append(statistics.mean(map(len, completion_ids)))
        return reward(completions, **columns)

    class Turns(transformers.TrainerCallback):
        def on_step_begin(self, *_: object, **__: object) -> None:
            wait_for_go()
            self.watch = Watch()

        def on_step_end(self, *_: object, **__: object) -> None:
            self.watch.report(lengths[-1])

    trainer = GRPOTrainer(
        model=transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32"),
        reward_funcs=counted,
        processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        args=GRPOConfig(
            output_dir=tempfile.mkdtemp(),
            per_device_train_batch_size=case.prompts * case.group,
            num_generations=case.group,
            learning_rate=1e-6,
            lr_scheduler_type="constant",
            beta=0.0,
            temperature=1.0,
            max_steps=10**6,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            **options,
        ),
        callbacks=[Turns()],
        **more,
    )
    trainer.train()


SIDES = {"assay": run_assay, "trl": run_trl}


class Side:
    """One side's process, which takes a step when told to: ``script`` with the option ``--side``."""

    def __init__(self, side: str, name: str, folder: Path, script: str):
        self.arguments = ["--side", side, "--cases", name, "--folder", str(folder)]
        self.process = subprocess.Popen(
            [sys.executable, script, *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        )

    def step(self) -> dict[str, float]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith('{"seconds"'):
                return json.loads(line)
        raise SystemExit(f"a side ended early; run it by hand with a line `go` on stdin: {' '.join(self.arguments)}")

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def side_by_side(name: str, folder: Path, steps: int, script: str) -> list[tuple[dict[str, float], dict[str, float]]]:
    with Side("assay", name, folder, script) as ours, Side("trl", name, folder, script) as theirs:
        pairs = [(ours.step(), theirs.step()) for _ in range(steps + 2)]
    return pairs[2:]  # the first two steps warm caches up


def one_at_a_time(name: str, folder: Path, steps: int, script: str) -> list[tuple[dict[str, float], dict[str, float]]]:
    def take(side: str) -> list[dict[str, float]]:
        with Side(side, name, folder, script) as process:
            return [process.step() for _ in range(3)][1:]

    pairs: list[tuple[dict[str, float], dict[str, float]]] = []
    while len(pairs) < steps:
        pairs += zip(take("assay"), take("trl"), strict=True)
    return pairs


def compare(name: str, case: Case, steps: int, script: str, prepare: Callable[..., None]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        prepare(case, folder)
        pairs = (one_at_a_time if case.alone else side_by_side)(name, folder, steps, script)
    assay, trl = zip(*pairs, strict=True)
    return {
        "assay": statistics.median(x["seconds"] for x in assay),
        "trl": statistics.median(x["seconds"] for x in trl),
        "ratio": statistics.median(t["seconds"] / a["seconds"] for a, t in pairs),
        "work": statistics.median(t["work"] / a["work"] for a, t in pairs),
        "assay_work": statistics.median(x["work"] for x in assay),
        "assay_tokens": statistics.mean(x["tokens"] for x in assay),
        "trl_tokens": statistics.mean(x["tokens"] for x in trl),
    }


def main(
    cases: Mapping[str, Case],
    about: str | None,
    script: str,
    sides: Mapping[str, Callable[[Any, Path], None]] = SIDES,
    prepare: Callable[[Any, Path], None] = prepare,
    driver: Callable[[Any], float] | None = None,
) -> None:
    """Compare the sides on cases, as the command line of ``script`` says, which calls this.

    Args:
        sides: what takes steps of a case with a folder's weights, which ``prepare`` saves.
        driver: tells the processor's seconds of a step of assay's that no model takes.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=list(cases), choices=list(cases))
    parser.add_argument("--steps", type=int, help="counted steps of each side; 12, or 4 where they run one at a time")
    parser.add_argument("--side", choices=["assay", "trl"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        sides[arguments.side](cases[arguments.cases[0]], arguments.folder)
        return
    missed = []
    for name in arguments.cases:
        case = cases[name]
        if isinstance(case.model, str) and not Path(case.model).is_file():
            print(f"({name}) skipped: no {case.model}; `make real` fetches it")
            continue
        found = compare(name, case, arguments.steps or (4 if case.alone else 12), script, prepare)
        print(
            f"({name}) {case.prompts} x {case.group}, at most {case.tokens} tokens: assay {found['assay']:.3f} s "
            f"({found['assay_tokens']:.1f} tokens), TRL {found['trl']:.3f} s ({found['trl_tokens']:.1f} tokens), "
            f"ratio {found['ratio']:.2f} (goal {case.goal}), of processors' time {found['work']:.2f}",
            flush=True,
        )
        if driver is not None:
            alone = driver(case)
            print(f"  the driver without the model: {alone:.3f} s, {alone / found['assay_work']:.2%} of a step")
        if found["ratio"] < case.goal:
            missed.append(name)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main(CASES, __doc__, __file__)
