"""Which rubrics a service can have at all, as far as the routes tell by its name."""

from __future__ import annotations

import pytest

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.rubrics import reached, rubrics_of

ROUTES = [
    {"match": {"service": ["shop-*", "desk"]}, "rubrics": ["qa"]},
    {"match": {"service": "desk", "level": "error"}, "rubrics": ["entity"]},
    {"match": {"service": "desk"}, "rubrics": []},
    {"match": {"level": "error"}, "rubrics": ["answer"]},
    {"rubrics": ["text"]},
    {"rubrics": ["quality"]},
]


@pytest.mark.parametrize(
    ("service", "rubrics"),
    [("shop-1", {"qa"}), ("desk", {"qa"}), ("other", {"answer", "text"}), ("", {"answer", "text"})],
)
def test_a_route_for_other_services_and_those_behind_one_that_takes_everything_are_out(service, rubrics):
    assert rubrics_of(Config.model_validate({"routes": ROUTES}, strict=False), service) == rubrics


def test_without_routes_a_service_may_have_all():
    assert rubrics_of(Config(), "shop") == set(reached(Config()))
