"""``assay eval`` and ``assay report``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, Overrides, Unprotected, protect, say
from assay.cli.evaluations.dimensions import eval_dimensions
from assay.cli.evaluations.traces import eval_traces
from assay.cli.prm import eval_prm
from assay.errors import RunError, UsageError
from assay.printable import printable

BUDGETS = "1,4,16"
"""Of strategies, unless others are given."""

Extra = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=FIELD ...")]


def evaluate(
    target: Annotated[str, Positional],
    overrides: Overrides = (),
    samples: int | None = None,
    out: Path | None = None,
    metrics: str = "main",
    by: str | None = None,
    scorer: str | None = None,
    chain: str | None = None,
    chain_votes: int = 3,
    chain_rule: Literal["any", "majority", "all"] = "majority",
    chain_every: bool = False,
    equal: str = "same",
    verifier: str | None = None,
    reference: str | None = None,
    fields: Extra = (),
    threshold: float | None = None,
    workers: int | None = None,
    strategy: str | None = None,
    budgets: str | None = None,
    bank: Path | None = None,
    harness: str | None = None,
    judge: str | None = None,
    steps: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    dimensions: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    traces: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    as_json: AsJson = False,
    unsafe_no_sandbox: Unprotected = False,
) -> int:
    """Measure a model on held-out tasks, or samples that are there already: pass@k and more, with 95% intervals.

    assay eval runs/gsm8k --samples 16 --out evals/gsm8k

    assay eval evals/gsm8k --metrics all

    assay eval samples.jsonl --verifier math --reference answer

    assay eval Qwen/Qwen2.5-0.5B-Instruct math-500 --samples 4

    Example: assay eval runs/gsm8k --samples 16 --out evals/gsm8k

    Args:
        target: a run folder, a checkpoint in one, a recipe, a model (hub id, folder, GGUF file,
            openai:MODEL@http://host/v1), a file of samples (JSONL, JSON, CSV, Parquet), or an evaluation's folder: a
            finished one is measured again, a stopped one goes on; scorer, chain and equal find something else out of a
            finished one, which out keeps. Or the folder of a comparison of strategies or
            harnesses.
        overrides: a benchmark to measure on in place of the held-out tasks (gsm8k, math-500, humaneval, ...; assay
            benchmarks lists them), or gsm8k=PATH for one in a file or folder; changes to a model's configuration, e.g.
            tasks.source=countdown tasks.eval_size=200.
        samples: responses per task; evaluate.samples of the configuration unless given.
        out: folder to keep the evaluation in: samples as they come, and results. A name that ends in .parquet gets the
            samples alone, at the end.
        metrics: what to print: main, all, or names of groups or metrics, with commas between them. JSON has them all.
        by: fields of the tasks' meta to split the accuracy by, with commas between them; those called category,
            difficulty and the like unless given.
        scorer: gives each response a confidence, for best-of-n and calibration: confidence (the model's own), judge,
            none, path/to/file.py:function, or one with options, "steps(scorer=prm,reduce=last)".
        chain: who judges the reasoning, for CoT-pass@k: judge (the model itself), openai:MODEL@http://host/v1, or a
            scorer as above, which calls it right with more than one half.
        chain_votes: opinions of the judge about each chain of a right answer.
        chain_rule: how they are settled; pass@k by each rule is measured beside it. An opinion that cannot be read is
            an abstention and does not count.
        chain_every: have the chains of wrong answers judged too.
        equal: when two answers are one vote: same (text or number), exact, or verifier.
        verifier: judges in place of the one of each task's kind; a file of samples without verdicts needs one.
        reference: of a file of samples: the field with the reference, or a file of tasks that have them.
        fields: of a file of samples: what its fields are called, e.g. task=problem response=output.text passed=ok.
        threshold: of a file of samples: scores from here on are right; with steps, chances below it are wrong.
        workers: processes that judge a file of samples; the number of cores unless given, 0 judges in this one.
        strategy: compare strategies at test time instead, accuracy against tokens: names separated by commas, perhaps
            with options, e.g. "sample,majority,best_of_n(scorer=confidence)". out is then a folder for JSON and a page.
        budgets: of these, for each task: responses, 1,4,16 unless given, or tokens, 512t,2048t.
        bank: of these: a folder of responses to each task, --samples of them (64 unless given), which are made once,
            whatever is compared later: strategies draw from them, and ask the model for what they do not have.
        harness: compare harnesses instead, programs that work on the tasks by asking the model, and models, which the
            target then names several of, with commas between them: bare, react, planned, or commands of your own, e.g.
            "bare,react,python agent.py". out is then a folder, which goes on where it stopped.
        judge: of these: who scores how work was done, openai:MODEL@http://host/v1; without one that counts as 1.
        steps: measure a scorer of steps instead, which the target then is (a folder that assay train-prm wrote, a token
            classifier, path/to/file.py:function), on the labelled solutions in this file, or on those of rewardmath.
        dimensions: probe a reward model instead, a folder or hub id, on the responses in this file, which say how well
            each does in a dimension; out is then a JSON file for the clusters of its states.
        traces: measure the solutions in this file step by step against their reference solutions instead; the model
            says by its log-probabilities how alike two steps are (scorer gain, or rollout for its attention), and which
            points of the references are made, unless judge is another one.
        as_json: print the results as JSON.
    """
    from assay.cli import harnesses
    from assay.cli.strategies import FOUND, again, command
    from assay.records.evaluation_folder import is_folder
    from assay.tasks.files.benchmark import expanded

    overrides = tuple(expanded(overrides))

    if workers is not None and workers < 0:
        raise UsageError(f"--workers {workers} is negative; 0 judges in this process")
    protect(unsafe_no_sandbox)
    given: dict[str, Any] = {
        **{"by": by, "scorer": scorer, "chain": chain, "reference": reference, "fields": fields or None},
        **{"threshold": threshold, "workers": workers, "metrics": None if metrics == "main" else metrics},
        **{"equal": None if equal == "same" else equal},
    }
    if harness is not None:
        given |= {"strategy": strategy, "budgets": budgets, "verifier": verifier}
        if unused := [f"--{name}" for name, value in given.items() if value is not None]:
            raise UsageError(f"--harness compares harnesses, where {', '.join(unused)} would say nothing; leave it out")
        return harnesses.command(target, overrides, harness, judge, samples, out, as_json)
    if steps is not None:
        given |= {"strategy": strategy, "budgets": budgets, "verifier": verifier, "samples": samples, "out": out}
        del given["threshold"]
        if unused := [f"--{name}" for name, value in given.items() if value is not None]:
            raise UsageError(f"--steps measures a scorer of steps, where {', '.join(unused)} would say nothing")
        return eval_prm(target, steps, threshold, as_json)
    if dimensions is not None:
        given |= {"strategy": strategy, "budgets": budgets, "verifier": verifier, "samples": samples}
        if unused := [f"--{name}" for name, value in given.items() if value is not None]:
            raise UsageError(f"--dimensions probes a reward model, where {', '.join(unused)} would say nothing")
        return eval_dimensions(target, dimensions, out, as_json)
    if traces is not None:
        unknown = {"strategy": strategy, "budgets": budgets, "verifier": verifier, "samples": samples, "out": out}
        given = {k: v for k, v in {**given, **unknown}.items() if k != "scorer"}
        if unused := [f"--{name}" for name, value in given.items() if value is not None]:
            raise UsageError(f"--traces measures steps of solutions, where {', '.join(unused)} would say nothing")
        return eval_traces(target, overrides, traces, scorer or "gain", judge, as_json)
    if judge is not None:
        raise UsageError("--judge is for --harness and --traces; who judges the reasoning of responses is --chain")
    if strategy is not None:
        given |= {"samples": None if bank else samples}
        if unused := [f"--{name}" for name, value in given.items() if value is not None]:
            raise UsageError(
                f"--strategy compares strategies under --budgets, where {', '.join(unused)} would say nothing; leave "
                "it out, or give it to the strategy, e.g. best_of_n(scorer=judge)"
            )
        extra = [] if verifier is None else [f"tasks.verify={json.dumps(verifier)}"]
        from assay.evaluate.strategies.bank import ResponseBank

        kept = None if bank is None else ResponseBank(bank, 64 if samples is None else samples)
        return command(target, [*overrides, *extra], strategy, budgets or BUDGETS, out, as_json, kept)
    if bank is not None:
        raise UsageError("--bank is for --strategy, which draws from the responses in it")
    if budgets is not None:
        raise UsageError("--budgets is for --strategy; how many responses each task gets is --samples")
    if (folder := Path(target).expanduser()).is_dir() and not is_folder(folder):
        for name, shown in ((FOUND, again), (harnesses.FOUND, harnesses.again)):
            if (folder / name).is_file():
                if overrides or out is not None:
                    raise UsageError(f"{target} is a comparison; it is shown as it is, without other arguments")
                return shown(folder, as_json)
    from assay.console import Reporter
    from assay.engines.openai.costs import Usage
    from assay.evaluate.results import results
    from assay.evaluate.run import redoes, run
    from assay.evaluate.source import Options
    from assay.records.evaluation import Evaluation

    single = out is not None and out.suffix == ".parquet"
    names = () if by is None else tuple(name for name in by.split(",") if name)
    options = Options(
        *(samples, scorer, chain, equal, verifier, _mapping(fields), reference, threshold, names, workers),
        *(chain_votes, chain_rule, chain_every),
    )
    found, about = run(target, overrides, options, None if single else out, Reporter(as_json))
    if single:
        assert out is not None
        try:
            Evaluation("evaluation", int(about["step"]), tuple(found)).to_parquet(out)
        except OSError as error:
            raise RunError(f"could not write {out}: {error.strerror or error}") from None
    document = results(found, about, names or None)
    # What was found out of stored samples again is not what their folder says of them.
    into = folder if is_folder(folder) and not redoes(target, options) else None if single else out
    written = [] if into is None else _write(document, about, into)
    if as_json:
        print(json.dumps(document))
    else:
        _print(document, metrics)
        unjudged = [s for s in found if s.passed is None]
        if unjudged:
            reason = " ".join(unjudged[0].feedback.split())[:300]
            print(
                f"{len(unjudged)} of {len(found)} samples could not be judged"
                + (f"; the first: {printable(reason)}" if reason else "")
            )
        for part, usage in document.get("usage", {}).items():
            say(f"{part}: {Usage(**usage)}")
        print("".join(f"{path}\n" for path in written), end="")
    if found and all(s.passed is None for s in found):
        reason = " ".join(found[0].feedback.split())[:300] or "it gives no reason"
        raise RunError(f"nothing was judged: all {len(found)} verdicts abstained; the first: {reason}")
    return 0


def _mapping(fields: Sequence[str]) -> dict[str, str]:
    for item in fields:
        if "=" not in item:
            raise UsageError(f"--fields {item!r} is not of the form role=NAME, e.g. response=output")
    return {role: name for role, _, name in (item.partition("=") for item in fields)}


def _write(document: Mapping[str, Any], about: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write both documents into the folder of an evaluation."""
    from assay.evaluate.results import lm_eval
    from assay.records.files import write_text

    name, content = lm_eval(document, about["finished"])
    try:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        for path, data in ((folder / "results.json", document), (folder / name, content)):
            write_text(path, json.dumps(data, indent=1, allow_nan=False))
    except OSError as error:
        raise RunError(f"could not write into {folder}: {error.strerror or error}") from None
    return [folder / "results.json"]


def _print(document: Mapping[str, Any], metrics: str) -> None:
    """Print the chosen metrics in groups."""
    from assay.evaluate.results import chosen, to_measures

    every = to_measures(document)
    shown = chosen(every, metrics)
    counts = (f"{document[what]} {what[: -1 if document[what] == 1 else None]}" for what in ("tasks", "samples"))
    say(f"{document['model']}: {', '.join(counts)}")
    rows: list[tuple[str, str, str, str]] = []
    group = ""
    for m in shown:
        if m.group != group:
            group = m.group
            rows.append((group, "", "", ""))
        name = m.name.rpartition("/")[0].partition("=")[2] if group.startswith("by ") else m.name
        between = "" if m.low is None or m.high is None else f"{_number(m.low)} to {_number(m.high)}"
        rows.append((f"  {name}", _number(m.value), between, "" if m.tasks == document["tasks"] else f"{m.tasks}"))
    if not rows:
        return
    table = [("", "value", "95% interval", "tasks" if any(r[3] for r in rows) else ""), *rows]
    widths = [max(len(row[i]) for row in table) for i in range(4)]
    for name, value, between, tasks in table:
        line = f"{name:<{widths[0]}}  {value:>{widths[1]}}  {between:<{widths[2]}}  {tasks:>{widths[3]}}"
        say(line.rstrip())
    if metrics == "main" and len(shown) < len(every):
        print(f"{len(every) - len(shown)} more: --metrics all, or --json")


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.4g}"


def report(run: Annotated[Path, Positional]) -> int:
    """Write (again) the HTML report of a run folder.

    Example: assay report runs/gsm8k

    Args:
        run: the run's folder.
    """
    from assay.records.checkpoints import check_run
    from assay.report.html import write_report

    check_run(run)
    print(write_report(run))
    return 0
