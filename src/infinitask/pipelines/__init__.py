"""Pipelines, searches and transformed targets that keep the methods and fitted attributes of their model.

* :func:`make_pipeline`: transformers and a model; intervals, curves, calibration and fitted attributes of the model are
  available on the pipeline.
* :func:`tabular`: a model for tables with numbers, categories, text, dates and missing values (extra "table").
* :class:`TaskSearch`: a search of scikit-learn with all methods of its best model.
* :class:`TransformedTarget`: a model of log y, or of another monotone function of y, that predicts in the units of y.
"""

from ._passing import TaskSearch
from ._pipeline import TaskPipeline as TaskPipeline
from ._pipeline import make_pipeline, tabular
from ._target import TransformedTarget

__all__ = ["TaskSearch", "TransformedTarget", "make_pipeline", "tabular"]
