"""The label values that the configuration determines, so that their counters start at 0 instead of being absent."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from sidejudge.integrations.otlp.proxy.forward import UNJUDGED
from sidejudge.integrations.otlp.proxy.upstream import REASONS
from sidejudge.integrations.prometheus.labels import KnownLabels
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.api.totals import REJECTED
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.notify import names
from sidejudge.monitor.config.rubrics import reached, rubrics_of
from sidejudge.monitor.deliver.dispatcher import NOT_DELIVERED
from sidejudge.monitor.deliver.sinks import failure_reasons
from sidejudge.monitor.evaluate.build import known_judge
from sidejudge.monitor.feedback.failure_dataset import LANGFUSE_DATASET
from sidejudge.monitor.feedback.failure_dataset import REASONS as DATASET_REASONS
from sidejudge.monitor.ingest.forward_buffer import ENDS, UNKEPT
from sidejudge.monitor.ingest.langfuse.pull import REASONS as PULL_REASONS
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.revise.reevaluation import RevisionFailure
from sidejudge.scoring.rubrics.workflow import KINDS


def known(config: Config, watch: Watch, version: str) -> KnownLabels:
    """Return, by label, every value that this configuration can count."""
    sink = config.sinks.langfuse
    return KnownLabels(
        rubrics=list(reached(config).values()),
        rubrics_of=partial(rubrics_of, config),
        forced=bool(config.sampling.rules),
        ended_reasons=[reason.value for reason in EndReason],
        rejected_reasons=[REJECTED],
        destinations={
            **failure_reasons(config),
            **({LANGFUSE_DATASET: DATASET_REASONS} if sink is not None and sink.failure_dataset is not None else {}),
            **dict.fromkeys(names(config.alerts.notify), (NOT_DELIVERED,)),
        },
        forward_failures=REASONS if config.forward else (),
        forward_unjudged=UNJUDGED if config.forward else (),
        forward_ends=ENDS if config.forward and config.forward.buffer else (),
        forward_unkept=UNKEPT if config.forward and config.forward.buffer else (),
        pull_failures=PULL_REASONS if config.sources.langfuse else (),
        revision_failures=[why.value for why in RevisionFailure] if config.revised_within is not None else (),
        violations=violations(config),
        thresholds=watch.declared.policy.thresholds,
        own_thresholds=watch.declared.thresholds,
        conditions=watch.conditions,
        limits=watch.declared.metrics,
        judge=known_judge(config),
        version=version,
        revision=own_revision(),
        python=platform.python_version(),
        fingerprint=config.fingerprint[:12],
    )


def violations(config: Config) -> Mapping[str, Sequence[str]]:
    """The ways in which a trace may depart from each scenario."""
    return dict.fromkeys(config.scenarios, KINDS)


VARIABLE = "SIDEJUDGE_REVISION"
"""Environment variable that an image's build sets."""
UNKNOWN = "unknown"
_ROOT = Path(__file__).resolve().parents[2]
_DIGITS = 12
_PATIENCE_S = 5.0


@cache
def own_revision() -> str:
    """The revision of what this process runs, asked for once: git looks at every file of a checkout."""
    return revision(_ROOT)


def revision(root: Path) -> str:
    """The first digits of the commit; ``unknown`` when it was not recorded.

    It comes from the environment (an image), from what pip recorded of an installation out of a repository, or from git
    where this runs from a checkout. ``-dirty``: the checkout has changes.

    Args:
        root: The folder that holds the packages.
    """
    return os.environ.get(VARIABLE, "")[:_DIGITS] or _checked_out(root) or _installed() or UNKNOWN


def _installed() -> str:
    try:
        recorded = distribution("sidejudge").read_text("direct_url.json")
        return str(json.loads(recorded or "{}").get("vcs_info", {}).get("commit_id", ""))[:_DIGITS]
    except (PackageNotFoundError, ValueError, AttributeError):
        return ""


def _checked_out(root: Path) -> str:
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():  # a repository further up would be somebody else's
        return ""
    command = [git, "-C", str(root), "describe", "--always", "--dirty", "--exclude=*", f"--abbrev={_DIGITS}"]
    try:
        found = subprocess.run(  # noqa: S603  # nothing in it comes from outside
            command, capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
