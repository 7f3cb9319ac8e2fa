"""Importing this imports what ``sidejudge`` imports, for the process that it is forked from (``forked.py``)."""

import gc
import os
import warnings
from contextlib import suppress
from importlib import import_module

from sidejudge.integrations.addresses import trusted
from sidejudge.monitor.cli import COMMANDS
from sidejudge.monitor.config import Config
from sidejudge.monitor.runtime.metric_labels import own_revision

for name in (
    "tests.forked", "uvicorn", "uvloop", "sidejudge.monitor.runtime.app", "sidejudge.monitor.demo.scene",
    "sidejudge.monitor.offline.score.run", "sidejudge.monitor.deliver.langfuse.sink",
    "sidejudge.monitor.evaluate.judge.judge_backend", "sidejudge.integrations.judge.client",
    *(where.partition(":")[0] for where, _ in COMMANDS.values()),
    "anyio._backends._asyncio", "httpcore", "pydantic.v1",  # by what serves and what asks, at the first request
):  # fmt: skip
    import_module(name)

# Four seconds, and no thread. What is left of its loading is done by those that have a judge.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["LITELLM_MODE"] = "PRODUCTION"
with suppress(ImportError), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import_module("litellm")
    # By the first question to a judge.
    import_module("litellm.proxy.openai_files_endpoints.common_utils")
    import_module("openai.resources.chat")
    import_module("openai.resources.embeddings")

Config.model_rebuild()
trusted()
own_revision()
gc.collect()
gc.freeze()  # a monitor collects garbage as it starts, which would walk through all of it
