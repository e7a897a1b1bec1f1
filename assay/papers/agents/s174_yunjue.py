"""S174: an agent that begins without tools, writes them while it answers, keeps them and merges them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.engines.base import Sampling
from assay.inference.tools.evolution import ToolEvolution


@paper(
    "S174",
    "Yunjue Agent",
    arxiv="2601.18226",
    seams=["inference"],
    essentials={
        "manager, developer, executor and integrator answer a task": "test_four_roles_answer_a_task",
        "a tool is a program with a schema; it is tried before it is used": "test_what_a_tool_declares_is_read_off_it",
        "what fails is mended on the inputs it failed on, and accepts what it accepted": (
            "test_a_tool_is_mended_on_what_it_failed_on"
        ),
        "the executor asks for what is missing while it works": "test_the_executor_asks_for_a_tool",
        "the tasks of a batch see the library as it was before": "test_a_batch_begins_with_the_same_library",
        "a model tells which tools do the same, the names where it cannot": (
            "test_what_does_the_same_is_told_by_a_model"
        ),
        "of names that are alike the smallest source; else a merger with three tries, else all members": (
            "test_clusters_become_one_tool_or_stay"
        ),
        "absorbing twice changes nothing, and every recorded call still runs": "test_absorbing_is_idempotent",
        "EGL: tools written for each call, so far": "test_the_loss_by_hand",
        "on a stream the library converges to the primitives": "test_a_stream_of_five_primitives_makes_five_tools",
        "zero start, or from a file": "test_a_library_goes_on_from_its_file",
    },
    choices=(
        "the words of the prompts",
        "turns of the executor: 6; repairs of a tool: 2",
    ),
)
def yunjue(
    library: str | Path | None = None,
    batch: int = 16,
    turns: int = 6,
    repairs: int = 2,
    merges: int = 3,
    sampling: Sampling | None = None,
    developer: Any = None,
) -> ToolEvolution:
    """Tools evolve while tasks are answered: no labels, no change of weights.

        T_t = absorb(T_{t-1}, P_1, ..., P_B)       P_b: what task b of the batch has written, given T_{t-1}
        EGL_t = tools written up to t / calls made up to t

    Names the inference part ``tool_evolution``: ``assay eval MODEL --strategy "S174(library=tools.json)"``.

    Args:
        library, batch, turns, repairs, merges, sampling, developer: see
            :class:`~assay.inference.tools.evolution.ToolEvolution`.

    Source: Yunjue Agent (arXiv 2601.18226) and its authors' code.
    """
    return ToolEvolution(library, batch, turns, repairs, merges, sampling, developer)


claims(
    Claim(
        paper="S174",
        text="Tools that are kept and merged are called again, so that fewer are written for each call than where "
        "every batch begins without any.",
        setting="toolmaking",
        arms={"forgets": {"keep": False}, "keeps": {"keep": True}},
        better="keeps",
        baseline="forgets",
        measure="generality",
        evidence="construction",
        unequal="who keeps tools asks for fewer of them",
    )
)
