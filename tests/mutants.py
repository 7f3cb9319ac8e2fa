"""Mutants: one small change at a time to a room's code, and which of them the room's tests do not notice.

    make mutants ROOM=scoring/verdict TESTS=tests/scoring/verdict MOST=100

It works in a clone of what is committed, so that nobody's checkout changes under them. A mutant that survives is a line
that no test holds, or a change that means the same; it is printed as a difference, for somebody to decide.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / ".venv-mutants" / "bin" / "cosmic-ray"
CONFIG = """
[cosmic-ray]
module-path = {modules}
timeout = {timeout_s}
excluded-modules = []
test-command = {command}
[cosmic-ray.distributor]
name = "local"
"""


def _modules(found: Path, clone: Path) -> list[str]:
    files = [found] if found.is_file() else sorted(found.rglob("*.py"))
    return [str(each.relative_to(clone)) for each in files if each.name != "__init__.py"]


def _keep(session: Path, most: int, seed: int) -> None:
    """Leave ``most`` mutants of a session, drawn evenly, but none of a ``|``, which stands in types."""
    with closing(sqlite3.connect(session)) as open_session, open_session as store:
        drawn = "SELECT job_id FROM mutation_specs WHERE operator_name NOT LIKE '%Operator_BitOr_%'"
        jobs = sorted(job for (job,) in store.execute(drawn))
        kept = set(random.Random(seed).sample(jobs, min(most, len(jobs))))
        gone = [job for (job,) in store.execute("SELECT job_id FROM work_items") if job not in kept]
        for table in ("mutation_specs", "work_items"):
            store.executemany(f"DELETE FROM {table} WHERE job_id = ?", [(job,) for job in gone])


def survivors(room: str, tests: list[str], *, timeout_s: float, most: int, seed: int) -> tuple[int, list[str]]:
    """Run ``tests`` on mutants of ``room``: how many there were, and the differences that nothing noticed."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "sidejudge"
        here = os.environ | {"PYTHONPATH": str(clone), "PYTHONDONTWRITEBYTECODE": "1"}

        def run(*words: str | Path) -> str:
            return subprocess.run(words, cwd=clone, env=here, check=True, stdout=subprocess.PIPE, text=True).stdout

        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        python = ROOT / ".venv" / "bin" / "python"
        command = f"{python} -m pytest -q -n0 -x -p no:cacheprovider {' '.join(tests)}"
        # Compiled by contents: what is changed is compiled anew each time, and nothing else is.
        run(python, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", ".")
        modules = json.dumps(_modules(clone / room, clone))
        config = CONFIG.format(modules=modules, timeout_s=timeout_s, command=json.dumps(command))
        (clone / "mutants.toml").write_text(config)
        run(TOOL, "baseline", "mutants.toml")
        run(TOOL, "init", "mutants.toml", "session.sqlite")
        _keep(clone / "session.sqlite", most, seed)
        run(TOOL, "exec", "mutants.toml", "session.sqlite")
        done = [json.loads(line)[1] for line in run(TOOL, "dump", "session.sqlite").splitlines()]
    results = [result for result in done if result is not None]
    return len(results), [result["diff"] for result in results if result["test_outcome"] == "survived"]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("room", help="a folder or file of the product, such as scoring/verdict")
    asked.add_argument("tests", nargs="+", help="the tests that ought to notice")
    asked.add_argument("--timeout", type=float, default=60.0, help="seconds after which a mutant counts as noticed")
    asked.add_argument("--most", type=int, default=100, help="mutants that are tried, drawn from all")
    asked.add_argument("--seed", type=int, default=1, help="of the draw")
    given = asked.parse_args()
    count, alive = survivors(given.room, given.tests, timeout_s=given.timeout, most=given.most, seed=given.seed)
    sys.stdout.write("\n".join([*alive, f"{count} mutants, {len(alive)} survived"]) + "\n")


if __name__ == "__main__":
    main()
