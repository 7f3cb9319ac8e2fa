"""The policy of seed 004's monitor: the ratio itself, from the first verdict on."""

from __future__ import annotations

from sidejudge.scoring.status.status import Policy

SEED = Policy(mode="point", min_samples=1, min_failures=0)
