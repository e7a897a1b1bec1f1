"""From the names of two checkpoints, or of two stored evaluations, to their diagnosis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.diagnose.diagnosis import Diagnosis, diagnose
from assay.engines.target import Target, resolve
from assay.errors import UsageError
from assay.records.evaluation import Evaluation, stored

if TYPE_CHECKING:
    from assay.config import RunConfig
    from assay.diagnose.change_spectrum import Spectrum
    from assay.policies.causal_lm import CausalLM


def diagnose_names(
    before: str,
    after: str,
    *,
    tasks: str | None = None,
    overrides: Sequence[str] = (),
    samples: int = 16,
    aid_samples: int = 4,
    weights: bool = True,
    quiet: bool = False,
) -> tuple[Diagnosis, tuple[Evaluation, Evaluation]]:
    """Compare two models, or two evaluations that are stored; return the samples too.

    Models are asked the held-out tasks of the run that ``after`` is from, or else of ``before``'s, with its lengths
    and temperature, unless ``tasks`` says otherwise.

    Args:
        before, after: two run folders, checkpoints, model folders or hub ids, or two evaluations as ``assay eval``
            stores them, folders or Parquet files.
        tasks: a recipe, whose tasks and sampling are taken, or the name of a task source.
        overrides: changes to the configuration, ``a.b.c=value`` each.
        samples: responses to each task from each model.
        aid_samples: responses to each task under each aid; 0 asks nothing with aids.
        weights: compare the weights.
        quiet: show no progress.

    Raises:
        UsageError: a name that is none of these, no tasks, or something that does not fit.
    """
    one, other = (stored(name) for name in (before, after))
    if one is not None and other is not None:
        if tasks is not None or overrides:
            raise UsageError("samples that are stored are of the tasks they are of; leave tasks and changes out")
        note = "Only samples were compared: likelihoods, aids and weights need the models."
        return diagnose(one, other, labels=(before, after), notes=[note]), (one, other)
    if one is not None or other is not None:
        raise UsageError("compare two models, or two stored evaluations, not one with the other")
    return _models(before, after, tasks, overrides, samples, aid_samples, weights, quiet)


def _models(
    before: str,
    after: str,
    tasks: str | None,
    overrides: Sequence[str],
    samples: int,
    aid_samples: int,
    weights: bool,
    quiet: bool,
) -> tuple[Diagnosis, tuple[Evaluation, Evaluation]]:
    from assay.console import Reporter
    from assay.diagnose.readings import read_models, work
    from assay.engines.base import Sampling
    from assay.tasks.configured import held_out
    from assay.verify.configured import make_verifier
    from assay.verify.isolate.pool import check_verifier

    if samples < 1 or aid_samples < 0:
        raise UsageError(
            f"a diagnosis needs samples of 1 or more and aid samples of 0 or more, got {samples} and {aid_samples}"
        )
    for name in (before, after):
        if Path(name).suffix == ".toml":
            raise UsageError(f"{name} is a recipe, which has no weights; name a run folder, a checkpoint or a model")
    first, second = resolve(before, overrides), resolve(after, overrides)
    config = _asking(first, second, tasks, overrides)
    asked = held_out(config)
    verifier = make_verifier(config)
    check_verifier(verifier, asked)
    policies = first.load(), second.load()
    notes = []
    changes = spectrum = None
    if weights:
        changes, spectrum, note = _weights(*policies)
        notes += [note] if note else []
    with Reporter(quiet).progress("diagnose", work(asked, aid_samples)) as tick:
        one, other, readings = read_models(
            policies,
            (before, after),
            asked,
            verifier,
            samples=samples,
            sampling=Sampling(
                config.rollout.max_tokens,
                config.evaluate.temperature,
                config.evaluate.top_p,
                stop=tuple(config.rollout.stop),
            ),
            seed=config.seed,
            aid_samples=aid_samples,
            max_rows=config.rollout.max_rows,
            tick=tick,
        )
    if readings.own is None:
        notes.append("The two models have different tokens: neither can read the other's responses.")
    if aid_samples and not readings.aids:
        notes.append("No task has a solution to begin, a plan, knowledge or subproblems: no aids were tried.")
    found = diagnose(
        one, other, labels=(before, after), readings=readings, weights=changes, spectrum=spectrum, notes=notes
    )
    return found, (one, other)


def _asking(first: Target, second: Target, tasks: str | None, overrides: Sequence[str]) -> RunConfig:
    """The configuration that says what is asked, and how."""
    from assay.config import load_config

    if tasks is not None:
        path = Path(tasks)
        return load_config(path if path.suffix == ".toml" else {"tasks": {"source": tasks}}, overrides)
    for target in (second, first):
        if target.trained:
            return target.config
    if any(o.startswith("tasks.source") for o in overrides):
        return second.config
    raise UsageError(
        f"neither {first.name} nor {second.name} is from a run, which would say what to ask; name a recipe or a task "
        "source with --tasks"
    )


def _weights(before: CausalLM, after: CausalLM) -> tuple[dict[str, dict[str, float]] | None, Spectrum | None, str]:
    """How the weights differ by kind of matrix, the spectrum of the difference, or why these are not known."""
    from assay.diagnose.change_spectrum import change_spectrum
    from assay.diagnose.weight_change import by_kind, weight_change

    try:
        states: list[Any] = [dict(p.merged_state()) for p in (before, after)]
        return by_kind(weight_change(states[0], states[1])), change_spectrum(states[0], states[1]), ""
    except UsageError as error:
        return None, None, f"Weights were not compared: {error}."
