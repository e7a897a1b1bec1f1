"""Statistics of lists of numbers."""


def mean(values):
    """Return the mean, rounded down; 0 of nothing."""
    if not values:
        return 0
    return sum(values) // len(values)


def median(values):
    """Return the middle value; of an even number of them the lower of the two."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[(len(ordered) - 1) // 2]


def mode(values):
    """Return the most frequent value, the smallest of equals."""
    best, most = None, 0
    for value in sorted(set(values)):
        times = values.count(value)
        if times > most:
            best, most = value, times
    return best


def spread(values):
    """Return the difference between the largest and the smallest value."""
    if len(values) < 2:
        return 0
    return max(values) - min(values)


def running(values, window):
    """Return the sums of each ``window`` neighbours."""
    if window < 1:
        raise ValueError("the window must be at least 1")
    return [sum(values[i : i + window]) for i in range(len(values) - window + 1)]


def outliers(values, limit):
    """Return the values further than ``limit`` from the median, in their order."""
    middle = median(values)
    return [value for value in values if abs(value - middle) > limit]
