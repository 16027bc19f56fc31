"""The peers on data that had no part in the development; see :mod:`experiments.fresh_sets`."""

from .peers import FRESH as EXPERIMENT

__all__ = ["EXPERIMENT"]
