"""Steps before a model: pipelines that answer every question their model answers, and tables as they are.

* :func:`make_pipeline`: transformers and a model; intervals, curves, calibration and fitted attributes of the model are
  those of the pipeline.
* :func:`tabular`: a model for tables with numbers, categories, text, dates and missing values (extra "table").
"""

from ._pipeline import TaskPipeline, make_pipeline
from ._tabular import tabular

__all__ = ["TaskPipeline", "make_pipeline", "tabular"]
