"""Configuration: one YAML file and the environment, read once, validated whole, immutable after."""

from .errors import ConfigError
from .load import Loaded, load, resolve
from .model import Config

__all__ = ["Config", "ConfigError", "Loaded", "load", "resolve"]
