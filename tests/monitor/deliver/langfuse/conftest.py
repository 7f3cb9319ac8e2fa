"""A fake Langfuse on a real socket, and the outbox in front of it."""

from __future__ import annotations

from tests.langfuse_bench import bench, fake  # noqa: F401  # fixtures
