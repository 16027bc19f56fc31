"""Steps before a model and around it: pipelines and searches that answer every question their model answers, tables as
they are, and targets on another scale.

* :func:`make_pipeline`: transformers and a model; intervals, curves, calibration and fitted attributes of the model are
  those of the pipeline.
* :func:`tabular`: a model for tables with numbers, categories, text, dates and missing values (extra "table").
* :class:`TaskSearch`: a search of scikit-learn whose best model can be asked everything.
* :class:`TransformedTarget`: a model of log y, or of another monotone function of y, that answers in the units of y.
"""

from ._passing import TaskSearch
from ._pipeline import TaskPipeline as TaskPipeline
from ._pipeline import make_pipeline, tabular
from ._target import TransformedTarget

__all__ = ["TaskSearch", "TransformedTarget", "make_pipeline", "tabular"]
