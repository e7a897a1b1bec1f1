"""S003: in long contexts, pay for finding the evidence as well as for the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from assay.batch import Batch, Reward
from assay.catalogue import paper
from assay.catalogue.claim import Claim, claims
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.rewards.judged import judged
from assay.rewards.wrapped import Around, terms_of, valid_in
from assay.select.reward_std import RewardSpread
from assay.signals.embeddings import MINILM, embedding
from assay.tasks.making.documents.clusters import Clustered
from assay.tasks.making.documents.questions import BestOfCluster, ClusterQuestions, RatedQuestions
from assay.tasks.making.recipe import pipeline
from assay.tasks.making.work import Here, Pipeline
from assay.types import Task
from assay.verify.grounding.evidence import Evidence


@paper(
    "S003",
    "LongRLVR",
    seams=["tasks", "verify", "reward", "select"],
    essentials={
        "F_beta of the chunks named, beta 2; naming a chunk twice costs precision": "test_rewards_by_hand",
        "R = a + eta F + (1 - eta) a F with eta 0.1": "test_rewards_by_hand",
        "a response without one block of evidence and one answer is worth 0": (
            "test_not_exactly_one_block_of_each_is_worth_nothing"
        ),
        "evidence is learned where it hardly ever leads to the answer": "test_evidence_is_learned_where_no_answer_is",
        "groups are left out by their final rewards, so those without a right answer still teach": (
            "test_groups_of_equal_rewards_are_replaced_and_no_others"
        ),
        "clip 0.2 and 0.28, dual clip 10, no divergence": "test_the_loss_is_the_papers",
        "documents of numbered chunks, with the numbers of those needed": (
            "test_a_document_task_is_judged_by_the_verifier_it_names"
        ),
        "passages of a document are clustered by what they mean, HDBSCAN by cosines": "test_clusters_are_told_apart",
        "a model writes questions about a cluster, each with the passages that it takes": (
            "test_questions_come_with_their_evidence"
        ),
        "a judge rates them from 0 to 10, and good ones are kept": "test_questions_are_rated",
        "documents become tasks by one command, and are trained on": "test_tasks_are_made_from_documents",
    },
    choices=(
        "the wording of the prompts",
        "a task's own verifier compares answers; a judge may be one",
        "passages have at most 2000 characters, where the authors count 512 tokens",
        "of a cluster's three questions the one rated best is kept if it has 8 or more",
    ),
)
def longrlvr(
    eta: float = 0.1, beta: float = 2.0, evidence: Any = None, tagged: bool = True, rounds: int = 10
) -> Method:
    """GRPO with a reward for the chunks of a long document that a response names as its evidence, beside the verdict.

        R_i = a_i + eta F_i + (1 - eta) a_i F_i,   F_i = (1 + beta^2) P R / (beta^2 P + R)
        P = |set(S) & Z| / |S|,  R = |set(S) & Z| / |Z|,   S the chunks as listed, Z those needed

    a_i = 1[right]. A right answer with all the evidence is worth 2, with none 1, and all the evidence without the
    answer eta. Without the answer's factor the gradient for finding evidence is proportional to the chance of then
    answering right, and vanishes with it; eta F_i does not. A response without exactly one
    ``<useful_chunks>...</useful_chunks>`` and exactly one ``<answer>...</answer>`` is worth 0. Z is
    ``task.reference["evidence"]`` or ``task.meta["evidence"]``; tasks that have neither are worth a_i. For tasks see
    :func:`document_task`; verifier ``evidence`` judges the evidence alone.

    The loss has clip range [0.8, 1.28], dual clip 10 and no KL. Groups of equal rewards are dropped and others asked in
    their place; it is R that counts, so that groups without a right answer teach what their evidence tells apart.

    Args:
        eta: in [0, 1].
        beta: weight of recall, above 0.
        evidence: a reward part that gives F instead.
        tagged: the two blocks are demanded.
        rounds: of generation in a step, at most; 1 replaces no group.

    Source: LongRLVR and its authors' code.
    """
    objective = ClippedSurrogate(clip_high=0.28, dual_clip=10.0)
    reward = EvidenceAndAnswer(eta, EvidenceF(beta) if evidence is None else evidence, tagged)
    return Method(reward=reward, select=RewardSpread(beta=0.0, least=1e-6, rounds=rounds), objective=objective)


class EvidenceAndAnswer(Around):
    """R_i = a_i + eta F_i + (1 - eta) a_i F_i, see :func:`longrlvr`; terms ``answer``, ``evidence`` and ``format``.

    Args:
        eta: in [0, 1].
        evidence: the reward part that gives F.
        tagged: where a task has evidence, a response without exactly one block of either kind is worth 0.

    Raises:
        UsageError: ``eta`` out of range.
    """

    def __init__(self, eta: float = 0.1, evidence: Any = None, tagged: bool = True):
        if not 0 <= eta <= 1:
            raise UsageError(f"reward 'S003': eta {eta:g} is outside [0, 1]")
        super().__init__({"evidence": EvidenceF() if evidence is None else evidence})
        self.eta, self.tagged = eta, tagged

    def __call__(self, batch: Batch) -> Reward:
        found = self.found(batch)
        f, dtype = found["evidence"].values, batch.rewards.dtype
        answer = torch.tensor([float(v.passed is True) for v in batch.verdicts], dtype=dtype)
        formed = torch.tensor(
            [
                float(not self.tagged or gold_of(task) is None or has_blocks(episode.text))
                for task, episode in zip(batch.tasks, batch.episodes, strict=True)
            ],
            dtype=dtype,
        )
        values = formed * (answer + self.eta * f + (1 - self.eta) * answer * f)
        told = torch.tensor([v.passed is not None for v in batch.verdicts], dtype=torch.bool)
        terms = {"answer": answer, "format": formed, **terms_of(found)}
        return Reward(values, valid=valid_in(found, batch) & told, terms=terms)


class EvidenceF:
    """R_i = F_beta of the chunks that the response names; 0 for a task that has no evidence to name.

    A task whose evidence is no list of identifiers, or an empty one, has no reward.

    Args:
        beta: weight of recall, above 0.
    """

    def __init__(self, beta: float = 2.0):
        self.verifier = Evidence(beta=beta)

    def __call__(self, batch: Batch) -> Reward:
        values, valid = torch.zeros_like(batch.rewards), judged(batch)
        for i, (task, episode) in enumerate(zip(batch.tasks, batch.episodes, strict=True)):
            if (gold := gold_of(task)) is not None:
                verdict = self.verifier(replace(task, reference=gold), episode.text)
                valid[i] = bool(valid[i]) and verdict.passed is not None
                values[i] = verdict.parts.get("f") or 0.0
        return Reward(values, valid=valid, terms={"f": values})


def gold_of(task: Task) -> Any:
    """Return the chunks that a task needs, or nothing."""
    if isinstance(task.reference, dict) and "evidence" in task.reference:
        return task.reference["evidence"]
    return task.meta.get("evidence")


def has_blocks(text: str) -> bool:
    """Say whether there is exactly one block of evidence and exactly one answer."""
    pairs = ((f"<{name}>", f"</{name}>") for name in ("useful_chunks", "answer"))
    return all(text.count(a) == text.count(b) == 1 and text.find(a) < text.find(b) for a, b in pairs)


def document_task(
    key: str, chunks: Sequence[str], question: str, answer: Any, evidence: Sequence[int], kind: str = "text"
) -> Task:
    """Return a task about a document of numbered chunks.

    Args:
        key: the task's id.
        chunks: pieces of the document, numbered from 0.
        question, answer: of it; ``kind`` is the verifier that compares answers.
        evidence: numbers of the chunks that are needed.

    Raises:
        UsageError: no evidence, or a number that is no chunk's.
    """
    if not evidence or not all(0 <= i < len(chunks) for i in evidence):
        raise UsageError(f"task {key}: evidence {list(evidence)} must be numbers of its {len(chunks)} chunks, from 0")
    document = "\n\n".join(f"<CHUNK_{i}>\n{chunk}" for i, chunk in enumerate(chunks))
    prompt = (
        f"{document}\n\nQuestion: {question}\n\nName the chunks that the answer rests on in "
        "<useful_chunks>...</useful_chunks>, such as <CHUNK_0>, <CHUNK_1>; then answer in <answer>...</answer>."
    )
    return Task(key, prompt, reference={"answer": answer, "evidence": list(evidence)}, kind=kind)


@dataclass(frozen=True, slots=True)
class AsDocument:
    """Makes a question with its evidence a task about the whole document, see :func:`document_task`.

    Args:
        kind: the verifier that compares answers.
    """

    kind: str = "text"

    def __call__(self, task: Task, here: Here) -> Task:
        told = {k: v for k, v in task.meta.items() if k not in ("passages", "cluster")}
        made = document_task(task.id, task.meta["passages"], task.question, **task.reference, kind=self.kind)
        return replace(made, meta=told)


@dataclass(frozen=True, slots=True)
class Sentences:
    """Embeds texts by a model of sentence-transformers, or by a function of theirs, loaded when it is first asked.

    Args:
        model: name or folder of the model; or ``file.py:function``, which returns ``(n, d)`` numbers for n texts.
    """

    model: str

    def __call__(self, texts: list[str]) -> Any:
        return embedding(self.model)(texts)


@pipeline("S003")
def document_questions(
    embedding: str = MINILM,
    most: int = 2000,
    similarity: float = 0.7,
    fewest: int = 4,
    taken: int = 4,
    n: int = 3,
    rating: float = 8.0,
    kind: str = "text",
) -> Pipeline:
    """Questions that take several passages of a long document, with the numbers of these passages.

    ``assay tasks make S003 --seeds "file(path=documents.jsonl,prompt=text,reference=auto)" --model WRITER --judge JUDGE
    --out new.jsonl``, each row of the documents with a ``text``; ``assay train method=S003 tasks.source.name=made
    tasks.source.path=new.jsonl`` learns from what is made. Needs ``assay[embeddings]``.

    Args:
        embedding: see :class:`Sentences`; the authors' model is BAAI/bge-m3.
        most, similarity, fewest, taken: see :class:`~assay.tasks.making.documents.clusters.Clustered`.
        n: questions asked for about a cluster.
        rating: of the judge's that is kept, in [0, 10].
        kind: the verifier that compares answers.
    """
    clusters = Clustered(Sentences(embedding), most, similarity, fewest=fewest, taken=taken)
    steps = (("clusters", clusters), ("questions", ClusterQuestions(n)), ("rated", RatedQuestions(rating)))
    return Pipeline("S003", (*steps, ("best", BestOfCluster()), ("documents", AsDocument(kind))))


BY_PART = {"evidence": {"name": "part", "part": "evidence"}, "tagged": False}
FOUND, MISSED = {"evidence": 1.0}, {"evidence": 0.0}

claims(
    Claim(
        paper="S003",
        text="Where even good evidence seldom leads to the answer, a policy rewarded for evidence finds it sooner than "
        "one rewarded for the answer alone.",
        setting="choices",
        evidence="construction",
        arms={"answer": {"name": "grpo"}, "evidence": {"name": "grpo", "reward": {"name": "S003", **BY_PART}}},
        better="evidence",
        baseline="answer",
        measure="area",
        options={
            "choices": [[[0.05, True, FOUND], [0.95, False, FOUND]], *([[[1.0, False, MISSED]]] * 7)],
            "steps": 100,
        },
        sweep={"lr": (0.1, 0.3, 1.0, 3.0)},
    )
)
