"""A page to play with, for the estimators that have one."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Explorable:
    """Estimators whose answers a person can explore in a page."""

    def explore(self, X: Any, y: Any = None, *, names: Any = None, title: str | None = None) -> Any:
        """A page in which a person moves the task and sees the consequences: one HTML file, no server, no network.

        A notebook shows it; ``.save("report.html")`` writes it. See :func:`infinitask.report.explore`.

        Parameters
        ----------
        X : array or data frame (n, d)
            Rows to look at, best not those of the fit.
        y : array (n,) or None
            Their targets or labels; without, the page says nothing about how often the model is right.
        names : list of str or None
            Of the columns; None: those of the model or of X.
        title : str or None

        Returns
        -------
        infinitask.report.Page
        """
        # by name: pages know estimators, and imports point one way
        return import_module("infinitask.report").explore(self, X, y, names=names, title=title)
