"""The interactive page of the estimators that have one."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Explorable:
    """Estimators whose predictions can be explored in an interactive page."""

    def explore(self, X: Any, y: Any = None, *, names: Any = None, title: str | None = None) -> Any:
        """Create an interactive page: moving the task shows how predictions and errors change.

        The page is one HTML file and needs neither a server nor a network. A notebook displays it;
        ``.save("report.html")`` writes it. See :func:`infinitask.report.explore`.

        Parameters
        ----------
        X : array or data frame (n, d)
            Rows to show, preferably held-out rows.
        y : array (n,) or None
            Their targets or labels; without them, the page does not say how often the model is right.
        names : list of str or None
            Names of the columns; None: those of the model or of X.
        title : str or None

        Returns
        -------
        page
            ``save(path)`` writes the file; a notebook shows it.
        """
        # by name: pages know estimators, and imports point one way
        return import_module("infinitask.report").explore(self, X, y, names=names, title=title)
