"""No credential that stands in an address is shown with the configuration."""

from __future__ import annotations

import pytest
import yaml

from sidejudge.monitor.config.load import load
from sidejudge.monitor.config.summary import in_force
from sidejudge.monitor.config.warnings import cautions

ADDRESS = "https://anna:s3cret-pw@{}.example/path?token=s3cret-query"
CONFIG = {
    "alerts": {"notify": [
        {"name": "am", "alertmanager": {"url": ADDRESS.format("am")}},
        {"name": "hook", "webhook": {"url": ADDRESS.format("hook"), "secret": "s3cret-key-of-the-hook"}},
    ]},
    "evaluators": {
        "judge": {"model": "openai/m", "api_base": ADDRESS.format("judge")},
        "embedding": {"model": "openai/e", "remote": True, "api_base": ADDRESS.format("embedding")},
    },
    "sources": {"otlp": {"cors_origins": ["https://page.example"]}},
}  # fmt: skip


def test_addresses_are_shown_without_user_password_and_query(tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text(yaml.safe_dump(CONFIG))
    config = load(path, {})
    shown = "\n".join(f"{key} {value}" for key, value, _ in in_force(config)) + str(list(cautions(config)))
    assert "s3cret" not in shown
    assert "anna" not in shown
    for host in ("am", "judge", "embedding"):
        assert f"https://…@{host}.example/path?…" in shown
    assert "https://page.example" in shown


@pytest.mark.parametrize("path", ["/services/T00000000/B00000000/a1B2c3D4e5F6g7H8i9J0k1L2"])
def test_what_looks_like_a_key_in_a_path_is_struck(tmp_path, path):
    file = tmp_path / "sidejudge.yaml"
    file.write_text(yaml.safe_dump({"alerts": {"notify": [
        {"name": "am", "alertmanager": {"url": f"https://hooks.example{path}"}}
    ]}}))  # fmt: skip
    assert "a1B2c3D4" not in str(in_force(load(file, {})))
