"""Directed graphs: a dict from each node to the list of those it leads to."""

from collections import deque


def distance(graph, start, goal):
    """Return the fewest steps from one node to another, -1 if there is no way."""
    waiting, seen = deque([(start, 0)]), {start}
    while waiting:
        node, steps = waiting.popleft()
        if node == goal:
            return steps
        for after in graph.get(node, []):
            if after not in seen:
                seen.add(after)
                waiting.append((after, steps + 1))
    return -1


def reachable(graph, start):
    """Return the nodes that can be reached, sorted, with the start."""
    seen, waiting = {start}, [start]
    while waiting:
        for after in graph.get(waiting.pop(), []):
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return sorted(seen)


def order(graph):
    """Return the nodes so that each comes before those it leads to, the smallest first; [] if there is a circle."""
    nodes = sorted(set(graph) | {after for found in graph.values() for after in found})
    before = dict.fromkeys(nodes, 0)
    for found in graph.values():
        for after in found:
            before[after] += 1
    out = []
    ready = [node for node in nodes if before[node] == 0]
    while ready:
        ready.sort()
        node = ready.pop(0)
        out.append(node)
        for after in graph.get(node, []):
            before[after] -= 1
            if before[after] == 0:
                ready.append(after)
    return out if len(out) == len(nodes) else []


def degree(graph, node):
    """Return how many edges lead to a node and from it, as a pair."""
    into = sum(found.count(node) for found in graph.values())
    return into, len(graph.get(node, []))


def turned(graph):
    """Return the graph with all edges the other way round."""
    out = {}
    for node, found in sorted(graph.items()):
        for after in found:
            out.setdefault(after, []).append(node)
    return out
