"""Half-open spans [start, end) of whole numbers, as pairs."""


def overlap(one, other):
    """Return how much two spans share."""
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def merge(spans):
    """Return spans without overlap that cover the same, in order; those that touch become one."""
    out = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def length(spans):
    """Return how many numbers are covered."""
    return sum(end - start for start, end in merge(spans))


def gaps(spans, first, last):
    """Return what of [first, last) is not covered."""
    out, at = [], first
    for start, end in merge(spans):
        if start >= last:
            break
        if start > at:
            out.append((at, start))
        at = max(at, end)
    if at < last:
        out.append((at, last))
    return out


def holds(spans, number):
    """Return whether a number is covered."""
    return any(start <= number < end for start, end in spans)


def busiest(spans):
    """Return the most spans that cover one number."""
    events = []
    for start, end in spans:
        if start < end:
            events += [(start, 1), (end, -1)]
    now, most = 0, 0
    for _, change in sorted(events):
        now += change
        most = max(most, now)
    return most
