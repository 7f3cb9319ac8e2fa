"""Importing this imports what ``sidejudge`` imports, for the process that it is forked from (``forked.py``)."""

import os
import warnings
from contextlib import suppress
from importlib import import_module

from sidejudge.monitor.cli import COMMANDS

for name in (
    "tests.forked", "uvicorn", "uvloop", "sidejudge.monitor.runtime.app", "sidejudge.monitor.demo.scene",
    "sidejudge.monitor.offline.score.run", "sidejudge.monitor.deliver.langfuse.sink",
    "sidejudge.monitor.evaluate.judge.judge_backend", "sidejudge.integrations.judge.client",
    *(where.partition(":")[0] for where, _ in COMMANDS.values()),
):  # fmt: skip
    import_module(name)

# Four seconds, and no thread. What is left of its loading is done by those that have a judge.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["LITELLM_MODE"] = "PRODUCTION"
with suppress(ImportError), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import_module("litellm")
