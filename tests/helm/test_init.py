"""Values that ``sidejudge init --kubernetes`` writes, rendered by the real engine with the library chart's schema."""

from __future__ import annotations

from click.testing import CliRunner

from sidejudge.monitor.cli import main


def test_values_for_kubernetes_are_rendered_by_the_library_chart(tmp_path, engine, shown):
    out = tmp_path / "sidejudge.yaml"
    judge = ["--judge", "openai/gpt-4o-mini-2024-07-18", "--langfuse", "https://langfuse.example.com"]
    done = CliRunner().invoke(main, ["init", "--yes", "--out", str(out), "--kubernetes", *judge])
    assert done.exit_code == 0, done.stderr
    assert "sidejudge-sidecar.container" in done.stdout
    (shown / "values.yaml").write_text((tmp_path / "sidejudge-values.yaml").read_text())
    rendered = engine.render(shown).manifest
    assert "traces_per_hour" in rendered
    for name in ("OPENAI_API_KEY", "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"):
        assert f"name: {name}" in rendered, "each variable comes from the Secret"
