"""Grids: lists of rows of equal length."""


def transposed(grid):
    """Return rows as columns."""
    return [list(column) for column in zip(*grid, strict=True)]


def turned(grid):
    """Return the grid turned by a quarter, clockwise."""
    return [list(column) for column in zip(*grid[::-1], strict=True)]


def neighbours(grid, row, column):
    """Return how many of the eight cells around one are not 0."""
    found = 0
    for r in range(max(0, row - 1), min(len(grid), row + 2)):
        for c in range(max(0, column - 1), min(len(grid[0]), column + 2)):
            if (r, c) != (row, column) and grid[r][c]:
                found += 1
    return found


def life(grid):
    """Return the next generation, of 0 and 1: a cell lives with three neighbours, or with two if it lived."""
    return [
        [int(neighbours(grid, r, c) == 3 or (cell and neighbours(grid, r, c) == 2)) for c, cell in enumerate(row)]
        for r, row in enumerate(grid)
    ]


def filled(grid, row, column, value):
    """Return the grid with the area of equal cells around one, by its sides, set to a value."""
    out, old = [list(line) for line in grid], grid[row][column]
    if old == value:
        return out
    waiting = [(row, column)]
    while waiting:
        r, c = waiting.pop()
        if 0 <= r < len(out) and 0 <= c < len(out[0]) and out[r][c] == old:
            out[r][c] = value
            waiting += [(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)]
    return out


def diagonal(grid):
    """Return the sum of the main diagonal."""
    return sum(grid[i][i] for i in range(min(len(grid), len(grid[0]))))
