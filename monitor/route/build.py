"""The router of a configuration: which rubrics judge its single traces."""

from __future__ import annotations

from sidejudge.monitor.config import Config

from .router import Router


def router_of(config: Config) -> Router:
    """The router of traces; that of sessions is made of their own section."""
    return Router(
        config.routes,
        config.scenarios,
        elsewhere=config.session_rubrics,
        default=config.default_rubrics,
        budgets=config.budgets,
    )
