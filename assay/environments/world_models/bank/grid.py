"""A grid with what may be in it."""

ROWS, COLUMNS, WRAPS, BUMP = 3, 3, False, 0.0
WALLS, ICE, PITS, DOOR, KEY, GOAL = [], [], [], None, None, [2, 2]
MOVES = {"north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1)}


def step(state, action):
    if action not in MOVES:
        return [state, 0.0, False]
    cell, key, reward = list(state["at"]), state["key"], 0.0
    coins = list(state["coins"])
    there = ahead(cell, action, key)
    if there == cell:
        return [state, -BUMP, False]
    while True:
        cell = there
        if cell == KEY:
            key = True
        if cell in coins:
            coins.remove(cell)
            reward += 1.0
        if cell in PITS or cell == GOAL or cell not in ICE:
            break
        there = ahead(cell, action, key)
        if there == cell:
            break
    if cell in PITS:
        reward -= 1.0
    if cell == GOAL:
        reward += 2.0
    return [{"at": cell, "key": key, "coins": coins}, reward, cell in PITS or cell == GOAL]


def ahead(cell, action, key):
    down, right = MOVES[action]
    there = [cell[0] + down, cell[1] + right]
    if WRAPS:
        there = [there[0] % ROWS, there[1] % COLUMNS]
    inside = 0 <= there[0] < ROWS and 0 <= there[1] < COLUMNS
    if not inside or there in WALLS or (there == DOOR and not key):
        return cell
    return there
