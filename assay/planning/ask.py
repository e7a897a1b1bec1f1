"""From a recipe and a command's options to plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from assay.config import RunConfig
from assay.errors import UsageError
from assay.planning import efficiency as efficiencies
from assay.planning.devices import PRICES_OF, Device, device_of
from assay.planning.layout import Layout
from assay.planning.lengths import SPREAD, Lengths
from assay.planning.models import shapes_of
from assay.planning.plan import Plan, advice, layouts, search
from assay.planning.shapes import Shapes, from_options
from assay.planning.workload import SIZES, EngineKind, Workload, mean_prompt, readers_of


@dataclass(frozen=True, slots=True)
class Ask:
    """What a plan is asked for beside the recipe. ``None`` leaves it to the recipe, or to be measured or searched.

    Attributes:
        gpus: devices in all.
        gpu: which, by name.
        per_node: devices of a machine; 8, or what the recipe's number of machines comes to.
        trainers, engines, tensor_parallel: the division, if it is fixed.
        staleness: steps by which generating weights may lag behind.
        engine: who generates.
        model_config: a config.json, or the folder that holds one.
        shape: shapes as ``name=number``.
        prompt_tokens, response_tokens: means.
        spread: log-deviation of response lengths.
        verify_seconds, verifiers: seconds of a verdict, and processes that judge.
        price: dollars per device and hour.
        efficiency: a file that a calibration wrote.
    """

    gpus: int | None = None
    gpu: str = "h100"
    per_node: int | None = None
    trainers: int | None = None
    engines: int | None = None
    tensor_parallel: int | None = None
    staleness: int | None = None
    engine: EngineKind | None = None
    model_config: Path | None = None
    shape: Sequence[str] = ()
    prompt_tokens: float | None = None
    response_tokens: float | None = None
    spread: float = SPREAD
    verify_seconds: float = 0.002
    verifiers: int | None = None
    price: float | None = None
    efficiency: Path | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The plan that takes least time of those that fit, and its rivals.

    Attributes:
        plan: the best, or of none that fits the one that lacks least.
        rivals: the best of each other kind of division.
        advice: single changes that make it fit, where nothing does.
        notes: what was assumed.
    """

    plan: Plan
    rivals: list[Plan]
    advice: list[str]
    notes: list[str]


def answer(config: RunConfig, ask: Ask) -> Answer:
    """Plan a recipe.

    Raises:
        UsageError: the model, the device or the prompts are not known, or an option is out of range.
    """
    _check(ask)
    device = device_of(ask.gpu)
    if ask.price is not None:
        device = replace(device, price=ask.price)
    shapes = _shapes(config, ask)
    work, notes = _workload(config, ask, shapes, device)
    gpus, given = _devices(config, ask)
    parallel = _parallel(config, ask)
    per_node = ask.per_node or (-(-gpus // config.scale.nodes) if config.scale.nodes > 1 else 8)
    staleness = ask.staleness if ask.staleness is not None else config.overlap.staleness
    if ask.efficiency is None:
        efficiency = efficiencies.assumed(device.name, work.engine)
        notes.append("the shares of peak that phases reach are assumed, not measured: see docs/scaling.md")
    else:
        efficiency = efficiencies.load(ask.efficiency, device.name)
        notes.append(f"the shares of peak that phases reach are {efficiency.source}")
    if given is not None:
        trainers, engines = given
        size = parallel or 1
        if size > 1 and not engines:
            raise UsageError(f"engines of {size} devices have devices of their own: say how many engines there are")
        if size > per_node:
            raise UsageError(f"an engine of {size} devices does not fit into a machine of {per_node}")
        candidates = [Layout(trainers, engines or trainers, size, not engines, per_node, staleness)]
    else:
        candidates = list(layouts(gpus, work, shapes, per_node, staleness, parallel))
    if work.quantised:
        candidates = [layout for layout in candidates if layout.trainers == 1]
        if not candidates:
            raise UsageError("weights in four bits are not sharded: say one trainer, or leave out model.quantise")
        notes.append("taking weights back from four bits costs time that is not counted")
    found = search(shapes, work, device, efficiency, candidates)
    best = found[0]
    if best.layout.tensor_parallel > 1:
        size = best.layout.tensor_parallel
        notes.append(
            f"engines of {size} devices are servers: engine.name=vllm-server engine.options.tensor_parallel_size={size}"
        )
    if ask.price is None and device.price:
        notes.append(f"{device.name} at ${device.price:g} an hour ({PRICES_OF}, on demand); give --price for yours")
    return Answer(
        best,
        [] if given else _rivals(best, found, efficiency),
        [] if best.fits else advice(best, candidates),
        notes,
    )


def _rivals(best: Plan, found: list[Plan], efficiency: efficiencies.Efficiency) -> list[Plan]:
    """Return the best in turn, the best side by side, and that with weights one step older or none."""
    given = (best.shapes, best.work)
    out = [next((p for p in found if p.layout.colocated is kind), None) for kind in (True, False)]
    apart = out[1]
    if apart is not None:
        other = 1 if apart.layout.staleness == 0 else 0
        again = [replace(p.layout, staleness=other) for p in found if not p.layout.colocated]
        out.append(search(*given, best.device, efficiency, again)[0])
    return [p for p in out if p is not None and p is not best]


def _workload(config: RunConfig, ask: Ask, shapes: Shapes, device: Device) -> tuple[Workload, list[str]]:
    notes = []
    rollout, train, model = config.rollout, config.train, config.model
    prompt = ask.prompt_tokens
    if prompt is None:
        prompt = mean_prompt(config)
        notes.append(f"prompts of {prompt:.4g} tokens: the mean of the recipe's first")
    longest = min(rollout.max_tokens, max(1, int(shapes.context - prompt)))
    if longest < rollout.max_tokens:
        notes.append(f"the model's context of {shapes.context:,} tokens leaves {longest:,} for a response")
    mean = ask.response_tokens
    if mean is None:
        mean = max(1.0, longest / 2)
        notes.append(f"responses of {mean:g} tokens on average: half of the longest, an assumption; --response-tokens")
    if mean > longest:
        raise UsageError(f"--response-tokens {mean:g} is above the longest response, {longest:,} tokens")
    readers, more = readers_of(config)
    size = SIZES[model.dtype]
    engine = _engine(config, ask, device)
    if ask.engine is None and not config.engine.name.startswith(engine):
        notes.append(f"{engine} generates, where the recipe says {config.engine.name}; --engine")
    workers = ask.verifiers or config.scale.verifiers or config.tasks.verify_workers or 1
    notes.append(f"{ask.verify_seconds:g} s per verdict, {workers} at once; --verify-seconds")
    work = Workload(
        prompts=rollout.prompts,
        group=rollout.group,
        prompt_tokens=prompt,
        lengths=Lengths(mean, longest, ask.spread),
        token_budget=train.token_budget,
        epochs=train.epochs,
        mini_batches=train.mini_batches,
        size=size,
        optimizer=train.optimizer,
        lora=model.lora,
        quantised=model.quantise is not None,
        checkpointing=model.gradient_checkpointing,
        readers=readers,
        engine=engine,
        max_rows=rollout.max_rows,
        verify_seconds=ask.verify_seconds,
        verify_workers=workers,
        steps=train.steps,
        weights=config.scale.weights,
    )
    return work, notes + more


def _shapes(config: RunConfig, ask: Ask) -> Shapes:
    options = {}
    for text in ask.shape:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--shape {text!r} is not of the form name=number")
        options[key] = value
    if {"layers", "hidden", "heads"} <= set(options):
        return from_options(options)
    shapes = shapes_of(config.model, ask.model_config)
    return from_options(options, shapes) if options else shapes


def _engine(config: RunConfig, ask: Ask, device: Device) -> EngineKind:
    if ask.engine is not None:
        return ask.engine
    if config.engine.name in ("vllm", "vllm-server"):
        return "vllm"
    # The default stands in every recipe; beside other devices it is not what anybody would generate with.
    return "vllm" if device.name != "cpu" and (ask.gpus or 1) > 1 else "hf"


def _parallel(config: RunConfig, ask: Ask) -> int | None:
    return ask.tensor_parallel or config.engine.options.get("tensor_parallel_size")


def _devices(config: RunConfig, ask: Ask) -> tuple[int, tuple[int, int] | None]:
    """Return how many devices there are, and trainers and engines where they are given (0 engines: in turn)."""
    size, scale = _parallel(config, ask) or 1, config.scale
    if ask.trainers is not None:
        engines = ask.engines or 0
        return ask.trainers + engines * size, (ask.trainers, engines)
    if ask.gpus is None and (scale.trainers > 1 or scale.engines):
        return scale.trainers + scale.engines * size, (scale.trainers, scale.engines)
    return ask.gpus or 1, None


def _check(ask: Ask) -> None:
    least = {"gpus": 1, "per_node": 1, "trainers": 1, "engines": 0, "tensor_parallel": 1, "staleness": 0}
    least |= {"prompt_tokens": 1, "response_tokens": 1, "spread": 0, "verify_seconds": 0, "verifiers": 1, "price": 0}
    for name, low in least.items():
        value = getattr(ask, name)
        if value is not None and not low <= value < float("inf"):
            raise UsageError(f"--{name.replace('_', '-')} {value} must be {low} or more")
    if ask.engines and ask.trainers is None:
        raise UsageError("--engines is given without --trainers; give both, or neither for the best division")
    if ask.trainers is not None and ask.gpus is not None:
        together = ask.trainers + (ask.engines or 0) * (ask.tensor_parallel or 1)
        if together != ask.gpus:
            raise UsageError(f"--trainers and --engines make {together} devices, --gpus says {ask.gpus}")
