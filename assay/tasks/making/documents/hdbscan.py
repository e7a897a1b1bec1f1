"""Clusters of any shape, and how many: HDBSCAN on distances."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

LEAST = 1e-12
"""The distance of what is at one place, of which there is no inverse."""


@dataclass(slots=True)
class _Cluster:
    """A cluster of the condensed tree: born at ``born``, an inverse distance; ``left`` are its points and the inverse
    distance at which each falls out of it."""

    born: float
    parent: int
    left: list[tuple[int, float]] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    size: int = 0


def hdbscan(distances: np.ndarray, least: int = 5, samples: int = 5, epsilon: float = 0.0) -> np.ndarray:
    """Return the cluster of each of N points, from 0 in the order of their first points, and -1 for those of none.

    Points are as far from each other as they are, or as either is from its ``samples``-th nearest. Of the hierarchy
    that single linkage makes of these distances, clusters are those of ``least`` points and more whose excess of mass
    is largest: sum over points of 1 / d where the point leaves the cluster, less 1 / d where the cluster begins. The
    whole is no cluster. One that begins at a distance below ``epsilon`` gives way to the first above it that does not.

    Args:
        distances: ``(N, N)``, symmetric, zeros on the diagonal.
        least: points of a cluster, at least 2.
        samples: itself among them, at least 1.
        epsilon: at least 0.

    Source: R. Campello and others (2013); epsilon: C. Malzer and M. Baum (arXiv 1911.02282).
    """
    n = len(distances)
    if n < max(least, samples, 2):
        return np.full(n, -1)
    core = np.partition(distances, samples - 1, axis=1)[:, samples - 1]
    reach = np.maximum(distances, np.maximum(core[:, None], core[None]))
    np.fill_diagonal(reach, 0.0)
    tree = _condensed(linkage(squareform(reach, checks=False), "single"), n, least)
    chosen = _far_enough(tree, _heaviest(tree), epsilon)
    labels = np.full(n, -1)
    for label, cluster in enumerate(chosen):
        labels[_points(tree, cluster)] = label
    order = {label: k for k, label in enumerate(dict.fromkeys(labels[labels >= 0].tolist()))}
    return np.array([order.get(label, -1) for label in labels.tolist()])


def _condensed(merges: np.ndarray, n: int, least: int) -> list[_Cluster]:
    """Return the clusters of ``least`` points or more, parents first, the first of them the whole."""
    sizes = [1] * n + merges[:, 3].astype(int).tolist()
    tree = [_Cluster(0.0, -1, size=n)]
    todo = [(2 * n - 2, 0)]
    while todo:
        node, at = todo.pop()
        first, second = (int(x) for x in merges[node - n, :2])
        where = 1 / max(float(merges[node - n, 2]), LEAST)
        large = [child for child in (first, second) if sizes[child] >= least]
        for child in (first, second):
            if child not in large:
                tree[at].left += [(point, where) for point in _leaves(merges, child, n)]
        if len(large) == 1:
            todo.append((large[0], at))
        elif large:
            for child in large:
                tree.append(_Cluster(where, at, size=sizes[child]))
                tree[at].children.append(len(tree) - 1)
                todo.append((child, len(tree) - 1))
    return tree


def _leaves(merges: np.ndarray, node: int, n: int) -> list[int]:
    out, todo = list[int](), [node]
    while todo:
        one = todo.pop()
        if one < n:
            out.append(one)
        else:
            todo += [int(x) for x in merges[one - n, :2]]
    return out


def _heaviest(tree: list[_Cluster]) -> list[int]:
    """Return clusters none of which is within another, whose excess of mass is together largest."""
    best: dict[int, tuple[float, list[int]]] = {}
    for at in range(len(tree) - 1, 0, -1):
        cluster = tree[at]
        mass = sum(where - cluster.born for _, where in cluster.left)
        mass += sum(tree[child].size * (tree[child].born - cluster.born) for child in cluster.children)
        below = sum(best[child][0] for child in cluster.children)
        if below > mass:
            best[at] = below, [one for child in cluster.children for one in best[child][1]]
        else:
            best[at] = mass, [at]
    return [one for child in tree[0].children for one in best[child][1]]


def _far_enough(tree: list[_Cluster], chosen: list[int], epsilon: float) -> list[int]:
    """Return the clusters with those that begin below ``epsilon`` replaced by the first above them that do not."""
    out: dict[int, None] = {}
    for one in chosen:
        at = one
        # What is just below the whole has nothing to give way to.
        while tree[at].parent > 0 and 1 / tree[at].born < epsilon:
            at = tree[at].parent
        out[at] = None
    within = {below for at in out for below in _below(tree, at) if below != at}
    return [at for at in out if at not in within]


def _below(tree: list[_Cluster], at: int) -> list[int]:
    out, todo = list[int](), [at]
    while todo:
        one = todo.pop()
        out.append(one)
        todo += tree[one].children
    return out


def _points(tree: list[_Cluster], at: int) -> list[int]:
    return [point for one in _below(tree, at) for point, _ in tree[one].left]
