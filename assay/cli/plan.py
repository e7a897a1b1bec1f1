"""``assay plan``: what a run would take on machines that are not here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, Overrides, print_table, say
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.planning.ask import Answer

File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]


def plan(
    recipe: Annotated[str | None, Positional, tyro.conf.arg(metavar="[RECIPE]")] = None,
    overrides: Overrides = (),
    gpus: int | None = None,
    gpu: str = "h100",
    per_node: int | None = None,
    trainers: int | None = None,
    engines: int | None = None,
    tensor_parallel: int | None = None,
    staleness: int | None = None,
    engine: Literal["hf", "vllm"] | None = None,
    model_config: File = None,
    shape: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=NUMBER")] = (),
    prompt_tokens: float | None = None,
    response_tokens: float | None = None,
    spread: float = 0.7,
    verify_seconds: float = 0.002,
    verifiers: int | None = None,
    price: float | None = None,
    efficiency: File = None,
    calibrate: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="RUN")] = (),
    out: File = None,
    explain: bool = False,
    as_json: AsJson = False,
) -> int:
    """Estimate memory per device, seconds of a step by part and cost of a recipe, on devices that need not be here.

    Example: assay plan gsm8k --gpus 64 --gpu h100 --prompt-tokens 150

    Args:
        recipe: a TOML file; without one, overrides change the defaults.
        overrides: changes to the recipe, e.g. model=Qwen/Qwen2.5-7B rollout.max_tokens=4096.
        gpus: how many devices; the best division into trainers and engines is searched. The recipe's if left out, or 1.
        gpu: which: a100, a100-40, h100, h200, b200, l40s, l4, a10, rtx4090, mi300x; or cpu, which is measured here.
        per_node: devices of a machine; 8 if left out.
        trainers: devices that train, if that is settled.
        engines: engines that generate beside them; 0 if the trainers do that in turn.
        tensor_parallel: devices of one engine.
        staleness: steps by which the weights that generate may lag behind; the recipe's, else 0.
        engine: who generates.
        model_config: the model's config.json, where the model itself is not here.
        shape: the model's shapes, e.g. layers=32 hidden=4096 heads=32 kv_heads=8 intermediate=14336; params replaces
            the number of parameters.
        prompt_tokens: of a prompt, on average; measured on the recipe's tasks if left out.
        response_tokens: of a response, on average; half of rollout.max_tokens if left out.
        spread: standard deviation of the logarithm of a response's length.
        verify_seconds: of one verdict.
        verifiers: verdicts at once.
        price: dollars per device and hour.
        efficiency: shares of peak that a calibration wrote.
        calibrate: finished runs of one process on such a device, to fit the shares of peak to; nothing is planned.
        out: where the calibration is written; efficiency-GPU.json if left out.
        explain: also the numbers that the formulas' symbols stand for.
        as_json: print everything as JSON.
    """
    if calibrate:
        return _calibrate(calibrate, gpu, out, as_json)
    if out is not None:
        raise UsageError("--out is where --calibrate writes; without it there is nothing to write")
    from assay.config import load_config
    from assay.planning.ask import Ask, answer
    from assay.planning.show import to_json

    if recipe is not None and "=" in recipe and not Path(recipe).exists():
        overrides, recipe = (recipe, *overrides), None
    if recipe is None and not overrides:
        raise UsageError("name a recipe, assay plan gsm8k --gpus 8, or changes to the defaults")
    ask = Ask(
        gpus=gpus,
        gpu=gpu,
        per_node=per_node,
        trainers=trainers,
        engines=engines,
        tensor_parallel=tensor_parallel,
        staleness=staleness,
        engine=engine,
        model_config=model_config,
        shape=shape,
        prompt_tokens=prompt_tokens,
        response_tokens=response_tokens,
        spread=spread,
        verify_seconds=verify_seconds,
        verifiers=verifiers,
        price=price,
        efficiency=efficiency,
    )
    config = load_config(recipe, overrides)
    if config.stages:
        return _stages({stage.name: answer(stage.within(config), ask) for stage in config.stages}, explain, as_json)
    found = answer(config, ask)
    if as_json:
        print(json.dumps(to_json(found)))
    else:
        _print(found, explain)
    return 0 if found.plan.fits else 1


def _stages(found: dict[str, Answer], explain: bool, as_json: bool) -> int:
    """Print what each stage takes, and all of the one that takes longest; return the exit code."""
    from assay.planning.quantity import readable
    from assay.planning.show import to_json

    times = {name: answer.plan.step.value * answer.plan.work.steps for name, answer in found.items()}
    if as_json:
        print(json.dumps({"stages": {name: to_json(answer) for name, answer in found.items()}}))
    else:
        longest = max(times, key=times.__getitem__)
        rows = []
        for name, a in found.items():
            seconds = (readable(a.plan.step.value, "s"), readable(times[name], "s"))
            rows.append((name, f"{a.plan.work.steps:,}", *seconds, "yes" if a.plan.fits else "NO"))
        steps = sum(a.plan.work.steps for a in found.values())
        rows.append(("in all", f"{steps:,}", "", readable(sum(times.values()), "s"), ""))
        print_table(("stage", "steps", "a step", "in all", "fits"), rows)
        print(f"\nthe longest, {longest}:")
        _print(found[longest], explain)
    return 0 if all(a.plan.fits for a in found.values()) else 1


def _print(found: Answer, explain: bool) -> None:
    from assay.planning.show import head, tables

    say(*head(found))
    for title, columns, rows in tables(found, explain):
        print(f"\n{title}")
        print_table(columns, rows)
    print("\nassumed:")
    say(*(f"- {note}" for note in found.notes))


def _calibrate(runs: tuple[Path, ...], gpu: str, out: Path | None, as_json: bool) -> int:
    from assay.planning.calibrate import calibrate, report
    from assay.planning.devices import device_of
    from assay.planning.efficiency import save

    device = device_of(gpu)
    file = out or Path(f"efficiency-{device.name}.json")
    found = calibrate(runs, device)
    save(file, device.name, found.efficiency)
    if as_json:
        print(json.dumps({"file": str(file), **found.plain()}))
    else:
        print_table(("run", "part", "measured", "fitted", "ratio"), report(found))
        print(file)
    return 0
