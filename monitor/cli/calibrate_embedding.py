"""``sidejudge calibrate --embedding``: the thresholds of a model of embeddings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import DATA, CommandError, ending
from .settings import runnable, show_json
from .terminal import number, table

if TYPE_CHECKING:
    from sidejudge.scoring.calibration.embedding_calibration import FittedThreshold, Separation
    from sidejudge.scoring.result.result import Unavailable


def calibrate_embedding(pairs: str, config: Path | None, form: str, *, write: bool) -> int:
    """Fit the thresholds of the configured model to pairs, show them, and write them where that is wanted."""
    from sidejudge.integrations.embed.local import EmbeddingError
    from sidejudge.monitor.offline.calibrate_embedding.run import PairFileError, fit_thresholds, read_pairs

    section = runnable(config).config.evaluators.embedding
    if section is None:
        raise CommandError("no embeddings are configured", "name the model: evaluators.embedding, in --config")
    remedy = "'sidejudge calibrate --help' shows a line; 'shipped' stands for our pairs"
    with (
        ending(PairFileError, naming=f"--embedding: {pairs}: ", remedy=remedy),
        ending(EmbeddingError, naming="evaluators.embedding: ", remedy="try it again"),
    ):
        found = asyncio.run(fit_thresholds(section, read_pairs(pairs)))
    fitted = _thresholds(found)
    if form == "json":
        show_json([asdict(each) for each in found])
    else:
        _show(section.model, found, fitted)
    if write and fitted:
        _write(config, fitted)
    return 0 if len(fitted) == len(found) else DATA


def _thresholds(found: Sequence[FittedThreshold]) -> dict[str, float]:
    from sidejudge.scoring.calibration.embedding_calibration import Separation

    return {each.kind: each.fitted.threshold for each in found if isinstance(each.fitted, Separation)}


def _show(model: str, found: Sequence[FittedThreshold], fitted: dict[str, float]) -> None:
    rows = []
    for each in found:
        for name, separation in (("fitted", each.fitted), ("seeds'", each.seed)):
            expected = number(each.expected) if name == "fitted" else "-"
            rows.append((each.kind, name, f"{each.n_same} / {each.n_different}", *_cells(separation), expected))
    head = ("kind", "threshold", "same / different", "cosine", "same found", "different found", "balanced")
    click.echo(click.style(model, bold=True, fg="cyan"))
    click.echo(table((*head, "95 % interval", "on pairs left out"), rows))
    for each in found:
        if each.excluded:
            click.echo(f"{each.kind}: {each.excluded} pairs are left out: figures or denials decide them, or a judge")
        if each.kind not in fitted:
            click.echo(f"{each.kind}: {getattr(each.fitted, 'reason', '')}")
    if fitted:
        stated = ", ".join(f"{name}: {value:g}" for name, value in fitted.items())
        click.echo(f"evaluators.embedding:\n  thresholds: {{{stated}}}")


def _cells(found: Separation | Unavailable) -> tuple[str, ...]:
    from sidejudge.scoring.calibration.embedding_calibration import Separation

    if not isinstance(found, Separation):
        return ("-",) * 5
    return (
        number(found.threshold), number(found.same), number(found.different), number(found.balanced),
        f"{found.lower:.2f}–{found.upper:.2f}",
    )  # fmt: skip


def _write(config: Path | None, fitted: dict[str, float]) -> None:
    from sidejudge.monitor.config import ConfigError, resolve
    from sidejudge.monitor.offline.calibrate_embedding.run import NotWrittenError, write_thresholds

    if config is None:
        raise CommandError("--write: there is no configuration file", "name it with --config")
    with ending(NotWrittenError, ConfigError, naming="--write: ", remedy="copy the lines above into the configuration"):
        write_thresholds(config, fitted, lambda path: resolve(path, os.environ))
    click.echo(f"{config}: written; rubrics that embeddings answer have another version now", err=True)
