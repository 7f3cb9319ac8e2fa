"""Configuration: one YAML file and the environment, read once, validated whole, immutable after."""

from .errors import ConfigError, Problem
from .load import Loaded, load, resolve
from .match import MatchSection
from .model import Config, RouteSection
from .sampling import SamplingRuleSection
from .units import Address, Duration

__all__ = [
    "Address",
    "Config",
    "ConfigError",
    "Duration",
    "Loaded",
    "MatchSection",
    "Problem",
    "RouteSection",
    "SamplingRuleSection",
    "load",
    "resolve",
]
