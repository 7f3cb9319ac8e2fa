"""Runs the campaign: ``python -m tests.faults.campaign --minutes 30 --seed 7``."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.faults.campaign.attacker import Budget
from tests.faults.campaign.campaign import Campaign, report

SETTLED_S = 120
"""How long the end takes about: what is open closes, scores arrive, the API is called in every way."""


def main() -> int:
    arguments = argparse.ArgumentParser(description="Kills, broken disks and hostile callers against a monitor.")
    arguments.add_argument("--minutes", type=float, default=5, help="of attack, and of waiting until all is settled")
    arguments.add_argument("--seed", type=int, default=None, help="repeat the run that printed it")
    defaults = Budget()
    for name in Budget.__slots__:
        arguments.add_argument(
            f"--{name.replace('_', '-')}", type=int, default=getattr(defaults, name), help="of the attacker"
        )
    given = arguments.parse_args()
    seed = secrets.randbelow(10**6) if given.seed is None else given.seed
    _show(f"seed {seed}")
    folder = Path(tempfile.mkdtemp(prefix="sidejudge-campaign-"))
    campaign = Campaign(
        folder, seed, show=_show, budget=Budget(**{name: getattr(given, name) for name in Budget.__slots__})
    )
    seen = campaign.run(max(given.minutes * 30, given.minutes * 60 - SETTLED_S))
    _show(report(seen, seed, campaign.attacker))
    if seen.broken:
        _show(f"the log and the store are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def _show(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


sys.exit(main())
