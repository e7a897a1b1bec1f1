"""Work that is made up: chores, a report from a busy service, a trail of look-ups, a bug to mend."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from assay.environments.functions.questions import Made, Problem
from assay.environments.repository.packages import evaluated, make_package, same
from assay.environments.shell.chores import chores
from assay.environments.shell.folder import PEOPLE, TEAMS, make_folder
from assay.environments.tools import ToolError
from assay.tasks.seeded import generator
from assay.tasks.workspaces.checks import Check, Wrong
from assay.tasks.workspaces.job import Get, Job

GUARDED = 0.2
"""Weight of the check that the rest of a folder is as it was."""


def tidy(seed: int, index: int, failures: int) -> Job:
    """One to three chores in a work folder: a check for each file that they change, one for all that must go."""
    rng = generator(seed, index, 0)
    while True:
        files = make_folder(rng)
        done = chores(files, int(rng.integers(1, 4)), rng)
        after = done[-1].after
        # An archive is judged by what is in it, not by its bytes.
        if not any(name.endswith(".tar.gz") for name in after):
            break
    asked = "\n".join(["Do this in this folder:", *(f"{i}. {c.text}" for i, c in enumerate(done, 1))])
    made = [name for name in sorted(after) if after[name] != files.get(name)]
    gone = [name for name in sorted(files) if name not in after]
    kept = [name for name in sorted(files) if after.get(name) == files[name]]
    weight = (1 - GUARDED) / (len(made) + bool(gone))
    checks = [_check(f"file {n}", weight, "sha256", file=n, sha256=hashlib.sha256(after[n]).hexdigest()) for n in made]
    if gone:
        # Where all is gone, nothing was tidied.
        checks.append(Check("gone", weight, "gone", {"gone": gone}, needs=("kept",)))
    checks.append(Check("kept", GUARDED, "kept", {"kept": kept}, beside=True, guard=True))
    return Job(asked, files, tuple(checks), tuple(c.command for c in done))


def report(seed: int, index: int, failures: int) -> Job:
    """Orders from a service, page by page, joined with a table in the folder."""
    rng = generator(seed, index, 1)
    people = [str(p) for p in rng.permutation(PEOPLE)[:8]]
    team = {p: str(rng.choice(TEAMS)) for p in people}
    pages = int(rng.integers(2, 4))
    orders = [(str(rng.choice(people)), int(rng.integers(5, 500))) for _ in range(4 * pages)]
    rows = [f"{i},{who},{amount}" for i, (who, amount) in enumerate(orders, 1)]
    routes = {"/": f"GET /orders?page=1 to /orders?page={pages}: id,person,amount\n"}
    for page in range(pages):
        routes[f"/orders?page={page + 1}"] = "".join(f"{row}\n" for row in rows[4 * page : 4 * page + 4])
    teams = "person,team\n" + "".join(f"{p},{team[p]}\n" for p in people)
    totals: Counter[str] = Counter()
    for who, amount in orders:
        totals[team[who]] += amount
    best = max(sorted(totals), key=lambda t: totals[t])
    asked = (
        f"A service has orders on {pages} pages, /orders?page=1 and so on, lines of id,person,amount; it may be busy, "
        "then ask again. teams.csv says whose team a person is in. Write report.json, an object of orders (how many "
        "there are), total (the sum of all amounts), teams (an object of each team's sum, teams with orders alone) and "
        "best (the team with the largest sum, of equal ones the first by name). Leave teams.csv as it is."
    )
    gold = (
        "cat page* > all.csv; awk -F, 'NR == FNR { if (FNR > 1) team[$1] = $2; next } "
        "{ n++; sum += $3; by[team[$2]] += $3 } "
        'END { printf "{\\"orders\\": %d, \\"total\\": %d, \\"teams\\": {", n, sum; '
        'for (t in by) { printf "%s\\"%s\\": %d", sep, t, by[t]; sep = ", "; '
        "if (by[t] > most || (by[t] == most && t < best)) { most = by[t]; best = t } } "
        'printf "}, \\"best\\": \\"%s\\"}\\n", best }\' teams.csv all.csv > report.json; rm page* all.csv'
    )
    wanted = {"orders": len(orders), "total": sum(a for _, a in orders), "teams": dict(totals), "best": best}
    weights = {"orders": 0.2, "total": 0.3, "teams": 0.3, "best": 0.1}
    checks = [
        Check(key, weights[key], "json", {"file": "report.json", "json": [key], "is": value})
        for key, value in wanted.items()
    ]
    checks.append(Check("kept", 0.1, "kept", {"kept": ["teams.csv"]}, beside=True, guard=True))
    gets = [Get(f"/orders?page={page + 1}", f"page{page + 1}") for page in range(pages)]
    return Job(asked, {"teams.csv": teams.encode()}, tuple(checks), (*gets, gold), routes, failures)


def trail(seed: int, index: int, failures: int) -> Job:
    """A question of environment ``functions``, whose functions a service has: each needs what the one before gave."""
    problem = Made(seed, ("multi", "both"), 3, 2, 0, 6, "words").problem(index)
    routes = _called(problem)
    wanted = [str(problem.subs[i].value) for i in problem.roots]
    asked = (
        f"{problem.asked} A service knows: / lists what it can be asked, such as "
        f"{_path(problem.subs[0].function, dict.fromkeys(problem.subs[0].arguments, '...'))}; it may be busy, then ask "
        "again. Write what was asked for into answers.txt, in the order asked, one a line."
    )
    checks = tuple(
        _check(f"answer {i + 1}", 1 / len(wanted), "matches", file="answers.txt", matches=_line(i, text))
        for i, text in enumerate(wanted)
    )
    gets = [Get(_path(s.function, s.arguments), f"step{i}") for i, s in enumerate(problem.subs)]
    last = f"for i in {' '.join(map(str, problem.roots))}; do cat step$i; echo; done > answers.txt; rm step*"
    return Job(asked, {}, checks, (*gets, last), routes, failures)


def mend(seed: int, index: int, failures: int) -> Job:
    """A package of environment ``repository`` with a bug: calls that it breaks, and calls that it does not."""
    package = make_package(seed, index, 3, 8, 2)

    def calls(what: Any, files: Mapping[str, bytes], start: Mapping[str, bytes]) -> Wrong:
        tests: Sequence[Any] = what["calls"]
        given = evaluated(package.name, files, [expression for expression, _ in tests])
        right = all(same(value, wanted) for value, (_, wanted) in zip(given, tests, strict=True))
        return "" if right else "missing" if package.path not in files else "content"

    text = (
        f"The package {package.name} in this folder has a bug: {package.issue} Mend it; the tests in tests/ pass "
        "already, and others, which are not shown, decide."
    )
    checks = (
        Check("broken calls", 0.75, "calls", {"calls": package.tests[: package.fails]}),
        Check("other calls", 0.25, "calls", {"calls": package.tests[package.fails :]}, beside=True),
    )
    gold = f"cat > {package.path} <<'END_OF_FILE'\n{package.whole.rstrip()}\nEND_OF_FILE"
    files = {name: text.encode() for name, text in package.files.items()}
    return Job(text, files, checks, (gold,), kinds={"calls": calls})


JOBS: dict[str, Callable[[int, int, int], Job]] = {one.__name__: one for one in (tidy, report, trail, mend)}
"""By name, from a seed, an index, and how often each path of a service fails."""


def _check(id: str, weight: float, kind: str, **what: Any) -> Check:
    return Check(id, weight, kind, what)


def _line(index: int, text: str) -> str:
    return rf"\A(?:[^\n]*\n){{{index}}}[ \t]*{re.escape(text)}[ \t]*(?:\r?\n|\Z)"


def _path(name: str, arguments: Mapping[str, Any]) -> str:
    return f"/{name}?" + "&".join(f"{key}={quote(str(value))}" for key, value in arguments.items())


def _called(problem: Problem) -> Callable[[str], str | None]:
    """Return a service of a question's functions."""
    functions = problem.functions
    listed = [
        f"/{name}?{'&'.join(f'{k}=...' for k in f.tool.parameters['properties'])}: {f.tool.description}"
        for name, f in functions.items()
    ]

    def answer(path: str) -> str | None:
        parts = urlsplit(path)
        name = parts.path.strip("/")
        if not name:
            return "\n".join(listed) + "\n"
        if name not in functions:
            return None
        given: dict[str, Any] = dict(parse_qsl(parts.query))
        wanted = functions[name].tool.parameters["properties"]
        try:
            typed = {k: float(v) if wanted[k]["type"] == "number" else v for k, v in given.items()}
            return str(functions[name].value(typed)) if set(typed) == set(wanted) else None
        except (KeyError, ValueError, ToolError):
            return None

    return answer
