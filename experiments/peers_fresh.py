"""The peers on data that nobody had looked at; see :mod:`experiments.fresh_sets`."""

from .peers import FRESH as EXPERIMENT

__all__ = ["EXPERIMENT"]
