"""S119: a small judge that tells right, wrong and invalid, trained on cases that judges disagree on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.audit.published import raw_rows
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.rewards.judges.label_reward import macro_f1
from assay.rewards.judges.reference_judge import Unread
from assay.rewards.judges.ternary_judge import TernaryJudge
from assay.tasks.judging.ternary import DIRECT, LETTERS, REASONED, Item, Letter, letter


@paper(
    "S119",
    "CompassVerifier",
    arxiv="2508.03686",
    seams=["verify", "tasks", "evaluate", "policies"],
    essentials={
        "A, B or C by a model; what is invalid stays apart from what is wrong": "test_c_is_no_b",
        "how a reply is read: last box, bare letter, final judgment": "test_where_the_letter_stands",
        "boundary cases of every pattern, labelled by construction": "test_every_pattern_has_its_label",
        "formula variants, equivalent and not, checked by algebra": "test_formulas_are_labelled_by_algebra",
        "prompts are paraphrased; thinking is cut or put between other tags": "test_thinking_changes_no_verdict",
        "the mix of training data": "test_the_mix",
        "trivial, agreed and contested responses are told apart by votes": "test_votes_sort_responses",
        "accuracy and F1 with C merged into B, by domain and type, and of three labels": "test_tables_by_hand",
        "its benchmark is read as it is published": "test_its_benchmark_is_read",
        "the judge is fine-tuned on the letter": "test_a_judge_is_fine_tuned",
    },
    choices=(
        "34 patterns of our own for the paper's 34 templates, which were drawn from mistakes on its data",
        "cases are written by rules and not by a model",
        "formulas are varied by rules, one to three of each, and judged by assay's verifier of mathematics",
        "all wording; a reply without a letter abstains",
        "a reply without a letter is a mistake in accuracy and recall, and counted apart",
    ),
)
def compassverifier(
    judge: Any = None,
    reasoned: bool = False,
    invalid: Unread = "wrong",
    unread: Unread = "abstain",
    max_tokens: int | None = None,
) -> TernaryJudge:
    """A judge of final answers against references, A right, B wrong, C invalid; trained, or any that follows a prompt.

    Its training data are tasks ``ternary_judging``: judged responses, cases at the boundaries, variants of formulas,
    and all of them with their thinking changed; ``[warmup]`` on these is the fine-tuning. :func:`sorted_by_votes`
    chooses responses worth learning from, and :func:`tables` measures, on VerifierBench's 2,817 items
    (:func:`benchmark`) or others. As a verifier of a run it is
    ``{name = "assay.rewards.judges.ternary_judge:TernaryJudge", judge = ...}``.

    Args:
        judge: an engine, or the specification of one.
        reasoned: it thinks before its letter, which stands in a box.
        invalid, unread: what C, and a reply without a letter, come to.
        max_tokens: of a reply; 8, or 8192 where it thinks, unless given.

    Raises:
        UsageError: no engine.

    Source: "CompassVerifier: A Unified and Robust Verifier" (arXiv 2508.03686).
    """
    longest = max_tokens or (8192 if reasoned else 8)
    shown = REASONED if reasoned else DIRECT
    return TernaryJudge(judge, shown, unread=unread, max_tokens=longest, invalid=invalid)


def benchmark(path: str | None = None) -> list[Item]:
    """Return the items of VerifierBench, with their three labels; in two, ``assay audit VERIFIER verifierbench``.

    Args:
        path: a file of it, or another place on the hub; its own there unless given.

    Raises:
        UsageError: it cannot be loaded, or a row of another form, with its place.
    """
    out = []
    for where, row in raw_rows("verifierbench", path):
        try:
            question, reference, response = (str(row[name]) for name in ("question", "gold_answer", "llm_response"))
            said, domain, kind = row["gold_judgment"], str(row["domain"]), str(row["answer_type"])
        except (KeyError, TypeError) as error:
            raise UsageError(f"{where} is no item of VerifierBench: it lacks {error}") from None
        if said not in LETTERS:
            raise UsageError(f"{where}: the judgment is {said!r}, not A, B or C")
        out.append(Item(question, reference, response, said, kind, domain))
    return out


Votes = Sequence[Letter | None]


@dataclass(frozen=True, slots=True)
class Sorted:
    """Places of items by how far judges agree on them.

    Attributes:
        trivial: all small judges say the same.
        agreed: they do not, and the strong ones do: place and verdict, for training.
        contested: neither do; for people, and for testing.
    """

    trivial: tuple[int, ...]
    agreed: tuple[tuple[int, Letter], ...]
    contested: tuple[int, ...]


def sorted_by_votes(small: Sequence[Votes], strong: Callable[[int], Votes]) -> Sorted:
    """Sort responses by the votes on each; strong judges are asked only where small ones differ.

    A vote that could not be read agrees with nothing.

    Args:
        small: votes of small judges without thinking, for each item; three in the paper.
        strong: votes of a strong judge by several prompts with thinking, for the place of an item.
    """
    trivial, agreed, contested = list[int](), list[tuple[int, Letter]](), list[int]()
    for i, votes in enumerate(small):
        if _unanimous(votes) is not None:
            trivial.append(i)
        elif (said := _unanimous(strong(i))) is not None:
            agreed.append((i, said))
        else:
            contested.append(i)
    return Sorted(tuple(trivial), tuple(agreed), tuple(contested))


def _unanimous(votes: Votes) -> Letter | None:
    return votes[0] if votes and len(set(votes)) == 1 else None


@dataclass(frozen=True, slots=True)
class Row:
    """How well items were judged; shares of all ``items``, of which ``unread`` had no verdict, each a mistake.

    Attributes:
        accuracy, f1: where C is merged into B, F1 of A; NaN where nothing is A and nothing said to be.
        ternary, macro_f1: of three labels, those that occur.
    """

    items: int
    unread: int
    accuracy: float
    f1: float
    ternary: float
    macro_f1: float


def tables(items: Sequence[Item], replies: Sequence[str]) -> dict[str, dict[str, Row]]:
    """Return how well replies judge items: over all, and by domain, by kind of answer and by pattern.

    Raises:
        ValueError: lengths that differ.
    """
    said = [letter(reply) for reply in replies]
    pairs = list(zip(items, said, strict=True))
    out = {"all": {"all": _row(pairs)}}
    for name in ("domain", "kind", "pattern"):
        groups = dict.fromkeys(getattr(item, name) for item in items)
        out[name] = {group: _row([p for p in pairs if getattr(p[0], name) == group]) for group in groups}
    return out


def _row(pairs: Sequence[tuple[Item, Letter | None]]) -> Row:
    truth, said = [item.label for item, _ in pairs], [found or "" for _, found in pairs]
    n = max(len(pairs), 1)
    hits = sum(t == s == "A" for t, s in zip(truth, said, strict=True))
    named = truth.count("A") + said.count("A")
    merged = sum((t == "A") == (s == "A") for t, s in zip(truth, said, strict=True) if s)
    three = sum(t == s for t, s in zip(truth, said, strict=True))
    f1 = 2 * hits / named if named else float("nan")
    return Row(len(pairs), said.count(""), merged / n, f1, three / n, macro_f1(said, truth, LETTERS))


claims(
    Claim(
        paper="S119",
        text="A small judge fine-tuned on judged responses, boundary cases and variants of formulas is right about "
        "new draws of such cases more often than one fine-tuned on judged responses alone.",
        setting="boundary_cases",
        evidence="construction",
        arms={
            "all": {},
            "without boundary cases": {"boundary": 0.0},
            "without formulas": {"formulas": 0.0},
            "judged responses alone": {"boundary": 0.0, "formulas": 0.0, "thinking": False},
        },
        better="all",
        baseline="judged responses alone",
        measure="macro_f1",
    )
)
