"""Score configs: reused where they allow what is declared, made once, and left alone where somebody narrowed them."""

from __future__ import annotations

import pytest

from sidejudge.integrations.langfuse.configs import ScoreConfigs
from sidejudge.integrations.langfuse.declared_scores import Declared
from sidejudge.integrations.langfuse.errors import LangfuseError
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import only

NUMBER = Declared(name="qa_score", data_type="NUMERIC", description="qa", low=0.0, high=1.0)
STATE = Declared(name="qa_state", data_type="CATEGORICAL", description="state", categories=("valid", "invalid"))
SCORE = {"name": "qa_score", "dataType": "NUMERIC", "value": 0.5}


def add(fake, name="qa_score", kind="NUMERIC", **more):
    config = {
        "id": f"c{len(fake.configs.all)}", "name": name, "isArchived": False, "description": None, "dataType": kind,
        "createdAt": f"2026-01-01T00:00:{len(fake.configs.all):02}.000Z", "minValue": None, "maxValue": None,
        "categories": None, **more,
    }  # fmt: skip
    fake.configs.all.append(config)
    return config["id"]


async def found(client, score=SCORE, known=(NUMBER, STATE)):
    return await ScoreConfigs(client(), known).id_of(score)


async def test_names_are_not_unique_and_the_oldest_that_fits_is_taken(fake, client):
    add(fake, kind="CATEGORICAL", categories=[{"label": "x", "value": 0}])
    oldest = add(fake)
    add(fake)
    assert await found(client) == oldest
    assert len(fake.configs.all) == 3


async def test_one_behind_a_hundred_others_is_found_and_not_made_again(fake, client):
    wanted = add(fake)
    for number in range(150):
        add(fake, f"other {number}")
    assert await found(client) == wanted
    assert len(fake.configs.all) == 151


async def test_an_archived_one_is_not_used_for_scores_that_name_it_are_dropped(fake, client):
    archived = add(fake, isArchived=True)
    made = await found(client)
    assert made not in (None, archived)


@pytest.mark.parametrize("narrowed", [{"minValue": 0.2}, {"maxValue": 0.8}, {"minValue": 0.2, "maxValue": 0.8}])
async def test_one_that_somebody_narrowed_is_left_alone_and_scores_go_without(fake, client, narrowed):
    add(fake, **narrowed)
    assert await found(client) is None
    assert len(fake.configs.all) == 1


async def test_a_category_that_is_missing_makes_a_config_unfit(fake, client):
    state = {"name": "qa_state", "dataType": "CATEGORICAL", "value": "valid"}
    add(fake, "qa_state", "CATEGORICAL", categories=[{"label": "valid", "value": 0}])
    assert await found(client, state) is None
    fitting = add(fake, "qa_state", "CATEGORICAL", categories=[{"label": n, "value": 0} for n in STATE.categories])
    assert await found(client, state) == fitting


@pytest.mark.parametrize(
    "score", [{**SCORE, "value": 1.5}, {**SCORE, "dataType": "BOOLEAN"}, {**SCORE, "name": "mine"}]
)
async def test_a_score_that_is_not_as_declared_names_no_config(fake, client, score):
    add(fake)
    assert await found(client, score) is None


async def test_a_label_that_is_no_text_makes_a_config_unfit_and_fails_nothing(fake, client):
    add(fake, "qa_state", "CATEGORICAL", categories=[{"label": {"text": "valid"}, "value": 0}, None])
    assert await found(client, {"name": "qa_state", "dataType": "CATEGORICAL", "value": "valid"}) is None


async def test_where_configs_are_forbidden_scores_go_without_and_an_outage_is_told(fake, client):
    fake.standing_fault = only("POST", "/score-configs", faults.error(403, "not allowed"))
    assert await found(client) is None
    fake.standing_fault = only("GET", "/score-configs", faults.database_away())
    with pytest.raises(LangfuseError):
        await found(client)
