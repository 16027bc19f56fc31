"""Fits: :func:`learn` turns a recipe and data into a fit."""

from ._data import Data
from ._fit import Fit
from ._gradients import Relevance as Relevance
from ._learn import learn
from ._recipe import Recipe
from ._recipe import Units as Units
from ._representer import Representer as Representer
from ._representer import representer_coefficients
from ._warm_start import Memory

__all__ = ["Data", "Fit", "Memory", "Recipe", "learn", "representer_coefficients"]
