"""Doctor tells whether embeddings work, in this process and at an endpoint, and what is wrong where they do not."""

from __future__ import annotations

import pytest
import yaml

from sidejudge.monitor.cli.doctor_checks import examine
from sidejudge.monitor.config import resolve
from tests.fakes import openai
from tests.needs import LITELLM

KEY = "sk-embed-0123456789"


@pytest.fixture
def found(tmp_path):
    """What doctor finds of a section ``evaluators.embedding``."""

    def ask(**section):
        path = tmp_path / "c.yaml"
        stated = {"evaluators": {"embedding": section}, "store": {"path": str(tmp_path / "s.sqlite")}}
        path.write_text(yaml.safe_dump(stated))
        (finding,) = (f for f in examine(resolve(path, {}), None) if f.subject == f"embeddings {section['model']}")
        return finding

    return ask


def test_a_model_in_a_folder_is_loaded_and_asked(found, embedding_model):
    finding = found(model=str(embedding_model))
    assert (finding.grade, finding.found) == ("ok", "answers with 64 dimensions")


def test_a_folder_that_is_not_there_is_told_with_the_remedy(found, embedding_model):
    finding = found(model=str(embedding_model) + "-not")
    assert finding.grade == "fail"
    assert "there is no folder" in finding.found
    assert "evaluators.embedding.model" in finding.remedy


def test_an_endpoint_is_asked_and_its_refusal_told_without_the_key(found):
    pytest.importorskip("litellm", reason=LITELLM.reason)
    with openai.Provider(openai.embeds(lambda text: (float(len(text)), 1.0))) as provider:
        section = {"model": "openai/some", "remote": True, "api_base": provider.url, "api_key": KEY}
        assert (found(**section).grade, found(**section).found) == ("ok", "answers with 2 dimensions")
        provider.will(openai.unauthorised())
        finding = found(**section)
    assert finding.grade == "fail"
    assert "authentication failed" in finding.found
    assert KEY not in finding.found + finding.remedy
