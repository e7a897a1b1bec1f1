"""A model card made from a run: what it learned from, how, and how far it got, with intervals."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.config import dump_config, load_config
from assay.evaluate import Evaluation, difference
from assay.records.checkpoints import check_run
from assay.records.evaluation import ladder
from assay.report.run import Run, read_run, upto
from assay.tasks.eval_sources import specs

LIMITS = (
    "The numbers are of held-out tasks, judged by the verifier of the run: they say little about other questions, and "
    "nothing about what the verifier does not see."
)


def model_card(folder: Path, repo: str, step: int | None = None) -> str:
    """Return the card of a run's model, Markdown with the metadata that the hub reads.

    Args:
        folder: of the run.
        repo: what the model is called there, ``owner/name``.
        step: of RL, whose weights these are; the last one unless given.

    Raises:
        UsageError: the folder is no run.
    """
    check_run(folder)
    run = read_run(folder)
    recipe = _recipe(folder)
    config = tomllib.loads(recipe)
    if step is not None:
        run = upto(run, step)
    source, tasks = config["model"]["source"], _name(config["tasks"]["source"])
    last = run.evaluations[-1] if run.evaluations else None
    lines = ["---", *_metadata(source, _measured(config, last), repo), "---", "", f"# {repo.rpartition('/')[2]}", ""]
    begun = "a small Llama from scratch" if source == "nano" else f"`{source}`"
    lines += [
        f"Made from {begun} by reinforcement learning with verifiable rewards: tasks `{tasks}`, method "
        f"`{_method(config['method'])}`, {_steps(run)}, with assay {_version(run)}.",
        "",
        "```python",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        f'model, tokenizer = (kind.from_pretrained("{repo}") for kind in (AutoModelForCausalLM, AutoTokenizer))',
        "```",
        "",
        f"or with assay: `assay eval {repo}`, `assay train ... model={repo}`.",
        "",
        *_results(run.evaluations),
        *_signs(run),
        "## How it was made",
        "",
        "`recipe.toml` beside this card has every setting: `assay train recipe.toml` runs it again.",
        "",
        "```toml",
        *recipe.splitlines(),
        "```",
        "",
        *_surroundings(run),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _measured(config: Mapping[str, Any], last: Evaluation | None) -> dict[str, Evaluation]:
    """Return an evaluation by what it is of: the tasks, or each of the sources that held-out ones come from."""
    if last is None:
        return {}
    said = config["tasks"].get("eval_source")
    if said is None:
        return {_name(config["tasks"]["source"]): last}
    return last.by_source() or {next(iter(specs(said, config["tasks"]["source"]))): last}


def _metadata(source: str, measured: Mapping[str, Evaluation], repo: str) -> list[str]:
    """Return the lines between the dashes; every text in JSON's quotes, which YAML reads."""
    out = ["library_name: transformers", "pipeline_tag: text-generation"]
    out += ["tags:", *(f"- {json.dumps(tag)}" for tag in ("assay", "reinforcement-learning", "rlvr"))]
    if source != "nano" and not source.startswith((".", "/", "~")) and not source.endswith(".gguf"):
        out.append(f"base_model: {json.dumps(source)}")
    found = {name: (part, of) for name, part in measured.items() if (of := part.pass_interval(1)) is not None}
    if found:
        out += ["model-index:", f"- name: {json.dumps(repo)}", "  results:"]
    for name, (part, of) in found.items():
        split = json.dumps(f"held out, {len(part.by_task())} tasks")
        out += ["  - task:", "      type: text-generation", "    dataset:", f"      name: {json.dumps(name)}"]
        out += [f"      type: {json.dumps(name)}", f"      split: {split}"]
        out += ["    metrics:", "    - type: pass@1", f"      value: {of.value:.4f}", "      name: sampled pass@1"]
    return out


def _results(evaluations: list[Evaluation]) -> list[str]:
    if not evaluations:
        return []
    out = [
        "## Results",
        "",
        "| evaluation | after RL step | tasks | k | pass@k | 95% interval over tasks |",
        "|---|---|---|---|---|---|",
    ]
    for whole in evaluations:
        for label, found in {"": whole, **whole.by_source()}.items():
            for k in ladder(found.k):
                if (value := found.pass_interval(k)) is not None:
                    name, tasks = ", ".join(filter(None, [found.label, label])), len(found.by_task())
                    interval = f"{value.low:.3f} to {value.high:.3f}"
                    cells = [name, found.step, tasks, k, f"{value.value:.3f}", interval]
                    out.append("| " + " | ".join(map(str, cells)) + " |")
    first, last = evaluations[0], evaluations[-1]
    if first is not last and first.pass_interval(1) is not None and last.pass_interval(1) is not None:
        change = difference(first, last, 1).interval
        interval = f"{change.value:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"
        out += ["", f"From {first.label} to {last.label}, pass@1 paired by task: {interval}."]
    return [*out, "", LIMITS, ""]


def _signs(run: Run) -> list[str]:
    if not run.signs:
        return []
    told = [f"- {sign.title}, at step {sign.step}: {' '.join(sign.text.split())}" for sign in run.signs]
    return ["## Signs that the reward was gamed", "", *told, ""]


def _recipe(folder: Path) -> str:
    return dump_config(load_config(folder / "config.toml"))


def _surroundings(run: Run) -> list[str]:
    packages = run.environment.get("packages", {})
    if not packages:
        return []
    named = ", ".join(f"{name} {version}" for name, version in packages.items())
    return [f"Python {run.environment.get('python', '?')}; {named}."]


def _steps(run: Run) -> str:
    shown, rl = len(run.metrics.get("warmup", [])), len(run.metrics.get("rl", []))
    return (f"{shown} supervised steps and " if shown else "") + f"{rl} steps of RL"


def _version(run: Run) -> str:
    return str(run.environment.get("packages", {}).get("assay", "?"))


def _method(method: Mapping[str, Any]) -> str:
    changed = [
        f"{seam} {_name(method[seam])}"
        for seam in ("reward", "credit", "select", "objective", "rollout")
        if seam in method
    ]
    return ", ".join([method["name"], *changed])


def _name(spec: Any) -> str:
    if isinstance(spec, list):
        return " + ".join(map(_name, spec))
    return str(spec.get("name", spec.get("function", "its own"))) if isinstance(spec, Mapping) else str(spec)
