"""What a user does with h(x)(·) once it is learnt: curves over θ, put in order and turned into answers.

* :class:`Rearrangement`: the curves in order, for every x and every pair of tasks.
* :func:`sign_change`: the task at which the sign of h(x)(·) changes, hence probabilities and p-values.
"""

from ._order import Rearrangement
from ._sign import sign_change

__all__ = ["Rearrangement", "sign_change"]
