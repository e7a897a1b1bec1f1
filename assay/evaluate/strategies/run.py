"""Strategies compared on what a target holds out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path

from assay.console import Reporter
from assay.engines.base import Engine, Sampling
from assay.engines.target import engine_setting, files_mark, resolve, tasks_mark
from assay.errors import UsageError
from assay.evaluate.strategies.bank import ResponseBank
from assay.evaluate.strategies.comparison import Comparison, compare_strategies
from assay.evaluate.strategies.folder import StrategyFolder, check
from assay.inference.base import Budget
from assay.inference.named import make_strategies, read_spec
from assay.tasks.configured import held_out, held_out_of
from assay.verify.configured import make_verifier
from assay.verify.isolate.pool import check_verifier


def run(
    target: str,
    overrides: Sequence[str],
    strategy: str,
    budgets: str,
    quiet: bool = False,
    out: Path | None = None,
    bank: ResponseBank | None = None,
) -> Comparison:
    """Compare strategies on a target's held-out tasks.

    Args:
        target, overrides: see :func:`assay.engines.target.resolve`.
        strategy: names, perhaps with options, separated by commas; see :mod:`assay.inference.named`.
        budgets: separated by commas, see :meth:`assay.inference.base.Budget.of`.
        quiet: show no progress.
        out: folder to keep outcomes in as they come, and to go on with.
        bank: of responses to draw from in place of sampling anew.

    Raises:
        UsageError: the target, a strategy or a budget does not fit, or the folder holds something else.
    """
    found = resolve(target, overrides)
    config = found.config
    rollout, measured = config.rollout, config.evaluate
    sampling = Sampling(rollout.max_tokens, measured.temperature, measured.top_p, stop=tuple(rollout.stop))
    # What cannot work is said before a model is loaded.
    try:
        named = make_strategies(strategy, sampling=sampling)
    except UsageError as error:
        if not str(error).endswith("needs head"):
            raise
        raise UsageError(f"{error}=FILE.safetensors; assay train-head {target} writes one") from None
    spending = [Budget.of(b) for b in budgets.split(",") if b.strip()]
    if not spending:
        raise UsageError("--budgets names no budget; write e.g. 1,4,16,64 for responses or 512t,2048t for tokens")
    tasks = held_out(config)
    verifier = make_verifier(config)
    check_verifier(verifier, tasks)
    most = max((b.samples or 16) for b in spending)
    chunk = max(1, rollout.max_rows // most)
    runs = sum(1 if getattr(s, "once", False) else len(spending) for s in named.values())
    sampled = {
        "model": config.model.setting,
        "weights": found.weights,
        "step": found.step,
        **engine_setting(config),
    }
    settings = {
        **sampled,
        "tasks": {"source": held_out_of(config), "mark": tasks_mark(tasks), "verify": config.tasks.verify},
        "strategies": list(named),
        "budgets": [str(b) for b in spending],
        "sampling": asdict(sampling),
        "seed": config.seed,
        "chunk": chunk,
        **({} if bank is None else {"bank": bank.samples}),
        **({"files": files} if (files := files_mark([read_spec(n) for n in named], config.tasks.verify)) else {}),
    }
    if out is not None:
        check(out, settings)
    engine = found.open()
    # What cannot be loaded leaves no folder behind.
    kept = None if out is None else StrategyFolder.create(out, settings)
    reporter = Reporter(quiet)
    with (
        _closing(engine),
        _going_on(reporter, out),
        nullcontext() if kept is None else kept.locked(),
    ):
        if bank is not None:
            mark = {**sampled, "tasks": tasks_mark(tasks)}
            with reporter.progress("responses", -(-len(tasks) // bank.chunk)) as tick:
                engine = bank.engine(tasks, engine, sampling, mark, config.seed, lambda done, total: tick(done))
        with reporter.progress("strategies", runs * -(-len(tasks) // chunk)) as tick:
            return compare_strategies(
                tasks,
                engine,
                verifier,
                named,
                spending,
                seed=config.seed,
                model=str(target),
                chunk=chunk,
                progress=lambda done, total: tick(done),
                kept=kept,
            )


@contextmanager
def _closing(engine: Engine) -> Iterator[None]:
    """Have an engine end at last what it has started."""
    try:
        yield
    finally:
        if callable(close := getattr(engine, "close", None)):
            close()


@contextmanager
def _going_on(reporter: Reporter, out: Path | None) -> Iterator[None]:
    """Say after an interrupt how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if out is not None:
            reporter.line(f"stopped; what was found is in {out}, and the same command goes on")
        raise
