"""An interactive page: one HTML file in which a person moves θ and sees the consequences at once.

:func:`explore` makes it from a fitted model and some rows. ``save`` writes the file; a notebook displays the page.

The file needs no server and no network. It contains the model itself and evaluates it for any row that a person enters
(``assets/field.js`` and ``assets/models.js``); no plot is computed in advance.
"""

from ._explore import explore

__all__ = ["explore"]
