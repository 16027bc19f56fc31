r"""The losses of the tasks, pointwise: functions of θ, y and h, without any matrix.

Every named loss is a row of one table. With the residual r = y − h it is the maximum of its lower bounds,

.. math::

    \ell_\theta(y, h) = \max_{u \in [a, b]} \; u r - \epsilon |u| - \tfrac{1}{2} q u^2 ,

and a row contains the interval [a, b], the dead zone ε and the softness q. The rest follows: the maximiser
u = −∂ℓ/∂h is minus the slope, the dual term is −ℓ*(−u) = y u − ε|u| − q u²/2, and adding κ to q gives the Moreau
envelope

.. math::

    \ell^\kappa_\theta(y, h) = \min_p \; \ell_\theta(y, p) + \tfrac{1}{2 \kappa} (h - p)^2

whose slopes stay inside [a, b]. Therefore each slope of a smoothed loss is a feasible dual point.

===================  =========  ==================  ===========  ==================================
loss                 Θ          [a, b]              ε            q (for u < 0, for u > 0)
===================  =========  ==================  ===========  ==================================
pinball              (0, 1)     [θ − 1, θ]          0            0
M-quantile           (0, 1)     [θ − 1, θ]          0            κ / (1 − θ), κ / θ
expectile            (0, 1)     ℝ                   0            1 / (2 (1 − θ)), 1 / (2 θ)
cost-sensitive       [−1, 1]    y·u ∈ [0, c]        0            κ / c, κ / c, with c = (1 + θ y) / 2
many classes         θ, k       s·u ∈ [0, √K c]     0            κ / (√K c), with c = (1 + θ s) / 2, r = s − h
level set            [0.05, 1]  [0, 1 / θ]          0            0, with r = −h
ε-insensitive        [0, 1]     [−1, 1]             θ            0
squared              any        ℝ                   0            1, 1
Huber                any        [−δ, δ]             0            1, 1
===================  =========  ==================  ===========  ==================================

Any other convex loss is defined by its value and its slope
(:class:`ConvexLoss`), or as a plain function that torch or jax differentiates (:class:`FunctionLoss`); the rest is then
computed from its tangents.

To add a loss, write a class with its row in ``_rows.py``.
"""

from ._base import BoxLoss, Loss, Row
from ._classes import MultiClassHinge as MultiClassHinge
from ._classes import OneAgainstRest as OneAgainstRest
from ._convex import ConvexLoss, FunctionLoss
from ._rows import CostSensitiveHinge, EpsilonInsensitive, Expectile, Huber, LevelSet, MQuantile, Pinball, Squared

__all__ = [
    "BoxLoss",
    "ConvexLoss",
    "CostSensitiveHinge",
    "EpsilonInsensitive",
    "Expectile",
    "FunctionLoss",
    "Huber",
    "LevelSet",
    "Loss",
    "MQuantile",
    "Pinball",
    "Row",
    "Squared",
]
