"""The games as one environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.environments.base import Action
from assay.environments.games.game import Game, Judged
from assay.environments.games.minesweeper import Minesweeper
from assay.environments.games.snake import Snake
from assay.environments.games.sudoku import Sudoku
from assay.environments.games.tictactoe import Opponent, TicTacToe
from assay.environments.games.tiles import Tiles
from assay.environments.lines import Interface, how
from assay.environments.stated import State, Stated
from assay.errors import UsageError
from assay.registry import part
from assay.tasks.seeded import check_index, check_seed, generator
from assay.types import Task, Verdict

Name = Literal["tictactoe", "sudoku4", "sudoku9", "minesweeper", "2048", "snake"]
NAMES: tuple[Name, ...] = ("tictactoe", "sudoku4", "minesweeper", "2048", "snake")


@dataclass(frozen=True, slots=True)
class GameTasks:
    """Endless instances of some games, which take turns; an instance is in the task's ``meta["setup"]``."""

    seed: int
    games: Mapping[str, Game]
    interface: Interface

    @property
    def size(self) -> None:
        return None

    def __getitem__(self, index: int) -> Task:
        names = list(self.games)
        name = names[check_index(index, None) % len(names)]
        setup = self.games[name].setup(generator(self.seed, index))
        return Task(
            id=f"games/{self.seed}/{name}/{index}",
            prompt=f"{self.games[name].rules} Play by {how(self.interface)}.",
            # The index tells tasks apart whose instances are the same, as empty boards are.
            reference={"game": name, "setup": setup, "index": index},
            kind="none",
            meta={"game": name, "setup": setup},
        )


class Games(Stated):
    """Games without an oracle, see :func:`games`."""

    def __init__(self, known: Mapping[str, Game], interface: Interface, moves: int, seed: int):
        super().__init__(interface, moves)
        self.known, self._tasks = known, GameTasks(seed, known, interface)

    def tasks(self) -> GameTasks:
        return self._tasks

    def beginning(self, task: Task) -> State:
        name = str(task.meta.get("game", ""))
        if name not in self.known:
            raise UsageError(f"environment 'games': task {task.id} is of {name!r}; it plays {', '.join(self.known)}")
        self.game = self.known[name]
        # No action's chance: the k-th has that of k.
        return self.game.start(task.meta["setup"], generator(self.seed, 2**32))

    def show(self, state: State) -> str:
        return self.game.show(state)

    def actions(self, state: State) -> Sequence[str]:
        return self.game.actions(state)

    def after(self, state: State, action: str, chance: np.random.Generator) -> tuple[State, str]:
        return self.game.play(state, action, chance)

    def over(self, state: State) -> bool:
        return self.game.over(state)

    def judged(self, state: State) -> Verdict:
        return self.game.verdict(state)

    def plan(self, state: State) -> Sequence[str]:
        return self.game.plan(state, self.chance)

    def key(self, state: State) -> str:
        return f"{self.task.meta['game']}: {self.game.key(state)}"


class JudgedGames(Games):
    """Games some of which have an oracle; of the others it abstains."""

    def judge(self, action: Action) -> Verdict:
        """Return whether an action is right by what can be known; one that cannot be taken is wrong."""
        if not isinstance(self.game, Judged):
            return Verdict.abstain(f"{self.task.meta['game']} has no oracle")
        line, error = self._read(action)
        return Verdict.wrong(error) if error else self.game.judge(self.state, line)


@part("environment", "games")
def games(
    names: Sequence[Name] = NAMES,
    opponent: Opponent = "minimax",
    blanks: int | None = None,
    board: int | None = None,
    mines: int | None = None,
    target: int | None = None,
    moves: int = 200,
    interface: Interface = "text",
    seed: int = 0,
) -> Games:
    """Board games as text, with verdicts from the board.

    ``tictactoe``, ``sudoku4``, ``sudoku9`` and ``minesweeper`` have exact oracles: minimax, the one solution, the
    posterior of the mines. ``2048`` and ``snake`` have none, since what is best depends on what chance will bring; an
    environment of these alone is no ``Oracle``.

    Args:
        names: of the games, which take turns: ``tictactoe``, ``sudoku4``, ``sudoku9``, ``minesweeper``, ``2048``,
            ``snake``.
        opponent: at TicTacToe: ``minimax``, one of the best moves at random, or ``random``.
        blanks: empty cells of a Sudoku, at most; by default 8 of 16, or 40 of 81.
        board: side of the others' board; by default 5 for Minesweeper, 3 for 2048, 6 for Snake.
        mines: of Minesweeper; by default an eighth of the cells.
        target: tile of 2048, by default 128, or fruits of Snake, by default 5.
        moves: turns of an episode, at most.
        interface: ``text`` or ``tool``.
        seed: of the tasks, >= 0.

    Raises:
        UsageError: no such game, or a board on which it cannot be played.
    """
    check_seed("environment 'games'", seed)
    if not names or len(set(names)) < len(names) or moves < 1:
        raise UsageError(f"environment 'games': it needs games, each once, not {list(names)}, and moves {moves} >= 1")
    field, tiles, yard = board or 5, board or 3, board or 6
    hidden = field * field // 8 if mines is None else mines
    goal, fruits = target or 128, target or 5
    if blanks is not None and blanks < 1:
        raise UsageError(f"environment 'games': blanks {blanks} must be at least 1")
    if "minesweeper" in names and not (2 <= field <= 16 and 1 <= hidden <= field * field - 2):
        raise UsageError(
            f"environment 'games': {hidden} mines on a board of {field} x {field}; take 2 to 16, and fewer"
        )
    if "2048" in names and (not 2 <= tiles <= 8 or goal < 8 or goal & (goal - 1)):
        raise UsageError(
            f"environment 'games': 2048 on {tiles} x {tiles} to {goal}; take 2 to 8, and a power of 2 from 8"
        )
    if "snake" in names and not (2 <= yard <= 20 and 1 <= fruits < yard * yard // 2):
        raise UsageError(f"environment 'games': {fruits} fruits on {yard} x {yard}; take 2 to 20, and fewer than half")
    known: dict[str, Game] = {
        "tictactoe": TicTacToe(opponent),
        "sudoku4": Sudoku(4, blanks or 8),
        "sudoku9": Sudoku(9, blanks or 40),
        "minesweeper": Minesweeper(field, field, hidden),
        "2048": Tiles(tiles, goal),
        "snake": Snake(yard, yard, fruits),
    }
    chosen: dict[str, Game] = {name: known[name] for name in names}
    kind = JudgedGames if any(isinstance(game, Judged) for game in chosen.values()) else Games
    return kind(chosen, interface, moves, seed)
