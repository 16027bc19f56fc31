"""A page to play with: one HTML file in which a person moves θ and sees the consequences at once.

:func:`explore` makes it from a fitted model and some rows. ``save`` of the page writes the file; a notebook shows it.

The file needs no server and no network. The model itself is in it and is evaluated there, for any row a person enters
(``assets/field.js`` and ``assets/models.js``); nothing is drawn in advance.
"""

from ._explore import explore

__all__ = ["explore"]
