"""Configuration: one YAML file and the environment, read once, validated whole, immutable after."""

from .errors import ConfigError, Problem
from .load import Loaded, load, resolve
from .match import Match
from .model import Config, RouteConfig, Rule
from .units import Address, Duration

__all__ = ["Address", "Config", "ConfigError", "Duration", "Loaded", "Match", "Problem", "RouteConfig", "Rule"]
__all__ += ["load", "resolve"]
