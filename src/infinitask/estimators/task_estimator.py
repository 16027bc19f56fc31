"""The general case: any parametrised convex loss, any Θ, any measure on it."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from infinitask import losses
from infinitask._base.arrays import HostArray
from infinitask._base.validation import choice, naming, number
from infinitask.estimators._base import BaseInfiniteTask, Prepared
from infinitask.estimators._parameters import inputs_of, weights_of
from infinitask.estimators._shared import Continuum, estimator
from infinitask.estimators._sources import in_kind
from infinitask.losses import FunctionLoss, LevelSet, Loss
from infinitask.measures import Discrete, Measure, ProductMeasure, Uniform
from infinitask.penalties import IntegratedRidge, Penalty, Ridge, quadratic_part
from infinitask.tasks import Order, Task, task_for

__all__ = ["InfiniteTaskEstimator"]

LOSSES: dict[str, type[Loss]] = {
    "pinball": losses.Pinball,
    "expectile": losses.Expectile,
    "cost-sensitive": losses.CostSensitiveHinge,
    "epsilon-insensitive": losses.EpsilonInsensitive,
    "squared": losses.Squared,
}

PENALTIES: dict[str, Penalty] = {
    "ridge": Ridge(),
    "integrated": IntegratedRidge(),
    "both": Ridge() + IntegratedRidge(),
}


def _default_measure(loss: Loss) -> Measure:
    """Return the uniform measure on the support or domain of a loss; an unbounded domain needs a given measure."""
    ends = np.asarray(loss.domain if loss.support is None else loss.support, dtype=np.float64)
    if not np.all(np.isfinite(ends)):
        return Uniform()
    pairs = np.broadcast_to(ends, (loss.dim or 1, 2)) if ends.ndim == 1 else ends
    factors = [Uniform(low, high) for low, high in pairs.tolist()]
    return factors[0] if len(factors) == 1 else ProductMeasure(factors)


@estimator
class InfiniteTaskEstimator(Continuum, BaseInfiniteTask):
    """The general case: any parametrised convex loss, any Θ ⊂ ℝ^d, any measure on it.

    min Σ_ij ω_i w_j ℓ_θj(y_i, f_ij) + λ_nc Σ_ij ω_i w_j (−∂f/∂θ)₊ + (λ/2)‖h‖² + (λ_b/2)‖b‖² over h and b, with
    f_ij = h(x_i)(θ_j) + b(θ_j). ``penalty`` replaces (λ/2)‖h‖² or adds to it.

    Parameters
    ----------
    loss : str, Loss or callable, default="pinball"
        "pinball", "expectile", "cost-sensitive", "epsilon-insensitive", "squared", an object of
        :mod:`infinitask.losses`, or a function of (θ, y, h) that torch or jax differentiates, see
        :class:`~infinitask.losses.FunctionLoss`.
    penalty : "ridge", "integrated", "both" or penalty object, default="ridge"
        "ridge": the norm of the RKHS of k_X·k_Θ; "integrated": ∫ ‖h(·)(θ)‖² dμ(θ), see
        :class:`~infinitask.penalties.IntegratedRidge` for a weight over θ; "both": their sum. Write other sums
        explicitly: ``Ridge() + 2.0 * IntegratedRidge()``. Convex functions of the values or derivatives of f, such as
        the total variation over θ, are added with a weight of their own:
        ``Ridge() + 0.1 * IntegratedPenalty((0, 0), of="slope")``, see
        :class:`~infinitask.penalties.IntegratedPenalty`.
    noncrossing : float, default=0.0
        λ_nc, the weight of the penalty on curves that decrease in θ.
    noncrossing_loss : {"hinge", "smoothed", "squared"}, default="hinge"
        The penalty where d = ∂f/∂θ < 0: (−d)₊, the smoothed ψ₊^κ(−d) with the ``kappa`` of the loss (the same as
        "hinge" if it has none), or (−d)₊².
    noncrossing_inputs : array (k, d) or None, default=None
        The points x at which crossing is penalised, each with weight 1/k, such as a grid or unlabelled rows. They
        replace the training rows in the mean of the penalty; include the training rows to keep the order there as well.
        None: the training rows.
    theta : float, array or None, default=None
        The task that ``decision_function`` predicts by default; None: the median of the measure; for a discrete measure
        in several dimensions, the point of largest weight.
    measure : measure, (low, high), frozen scipy.stats distribution, list of these or None, default=None
        μ on Θ; a list has one for each coordinate of θ; None: uniform on the domain of the loss. A custom loss without
        a domain needs a measure.
    {parameters}

    Attributes
    ----------
    nodes_, weights_ : ndarray (m,)
        The quadrature on Θ; the nodes are (m, d) if Θ ⊂ ℝ^d with d > 1.
    {attributes}

    Examples
    --------
    >>> from infinitask import InfiniteTaskEstimator
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(80, random_state=0)
    >>> tube = InfiniteTaskEstimator(loss="epsilon-insensitive", measure=(0.0, 0.5), n_nodes=20).fit(X, y)
    >>> tube.decision_function(X, [0.0, 0.25, 0.5]).shape
    (80, 3)
    >>> tube.dual_gap_ <= tube.tol
    True
    """

    _asked_by = "theta"
    _needs_targets = True
    _constraints: ClassVar = {"noncrossing": partial(number, low=0.0, open_low=False)}

    loss: Any = field(default="pinball", kw_only=False)
    penalty: Any = "ridge"
    noncrossing: float = 0.0
    noncrossing_loss: str = "hinge"
    noncrossing_inputs: Any = None
    theta: Any = None

    def _loss(self) -> Loss:
        if isinstance(self.loss, Loss):
            if isinstance(self.loss, LevelSet):
                raise ValueError("loss=LevelSet() needs the threshold t(θ) as well; use InfiniteOneClassSVM.")
            loss = self.loss
        elif callable(self.loss) and not isinstance(self.loss, type):
            loss = FunctionLoss(self.loss)
        else:
            also = ", a Loss object of infinitask.losses, or a function of (theta, y, h)"
            loss = LOSSES[choice("loss", self.loss, list(LOSSES), also)]()
        if self.measure is None and loss.support is None and not np.all(np.isfinite(loss.domain)):
            raise ValueError(
                f"measure=None was given with {type(loss).__name__}, which does not say on which θ it is defined; give "
                "a measure on Θ, for instance measure=(0, 1), or set the loss's domain."
            )
        return loss

    def _task(self) -> Task:
        loss, penalty = self._loss(), self.penalty
        if not isinstance(penalty, Penalty):
            penalty = PENALTIES[choice("penalty", penalty, list(PENALTIES), ", or a penalty object")]
        quadratic_part(penalty)  # an error must show the penalty as it was given, in the user's units
        order = Order(float(self.noncrossing), self.noncrossing_loss, inputs_of(self.noncrossing_inputs))
        return task_for(loss, _default_measure(loss), penalty=penalty, order=order)

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        recipe = self.recipe()
        shape: tuple[int, ...] = np.shape(y) if isinstance(y, (list, tuple)) else getattr(y, "shape", ())
        several = len(shape) == 2 and shape[1] > 1
        prepared = self._regression(recipe, X, y, sample_weight, multi_output=several)
        if several:
            atoms = recipe.task.measure.atoms()
            if atoms is None or atoms.nodes.shape[0] != shape[1]:
                raise ValueError(
                    f"y of shape {shape} was given with measure={recipe.task.measure!r}; a target for each task needs "
                    f"a Discrete measure of {shape[1]} points. Give a 1d y for a continuum."
                )
        return prepared

    @in_kind
    def decision_function(self, X: Any, theta: Any = None) -> HostArray:
        """Return h(x)(θ): (n,) for one task, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        theta : float, array (q,) or (q, d_Θ), or None
            None: the constructor's ``theta``.
        """
        return self._values(X, self._default_theta() if theta is None else theta, "theta")

    @in_kind
    def predict(self, X: Any, theta: Any = None) -> HostArray:
        """Return the same values as :meth:`decision_function`."""
        return self.decision_function(X, theta)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the integrated loss, −Σ_ij ω_i w_j ℓ_θj(y_i, h(x_i)(θ_j)); greater is better.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,), or (n, T) as in ``fit``
        sample_weight : array (n,) or None

        Examples
        --------
        >>> from sklearn.model_selection import cross_val_score
        >>> from infinitask import InfiniteTaskEstimator
        >>> from infinitask.datasets import make_sine
        >>> X, y = make_sine(80, random_state=0)
        >>> scores = cross_val_score(InfiniteTaskEstimator("pinball", n_nodes=10), X, y, cv=3)
        >>> bool((scores < 0.0).all())
        True
        """
        check_is_fitted(self)
        predicted = self._values(X, self.nodes_, "theta")
        with naming("y"):
            y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            check_consistent_length(predicted, y)
        if y.ndim == 2 and y.shape[1] not in (1, len(self.nodes_)):
            raise ValueError(
                f"y of shape {y.shape} was given to a model of {len(self.nodes_)} nodes; give one target for each row, "
                "or one for each row and node."
            )
        weight = weights_of(sample_weight, predicted)
        loss = self.recipe_.task.loss.value(self.nodes_, y if y.ndim == 2 else y[:, None], predicted)
        return -float(weight @ (loss @ self.weights_)) / float(weight.sum())

    @property
    def explore(self) -> Any:
        """Raise an error that names the models with an interactive page: a general loss has none."""
        raise AttributeError(
            f"{type(self).__name__} has no explore: a page has to know what h(x)(θ) means. The models for quantiles, "
            "costs and level sets have one; of this model, draw predict(X, theta)."
        )

    def _default_theta(self) -> Any:
        if self.theta is not None:
            return self.theta
        check_is_fitted(self)
        if isinstance(self.measure_, Discrete) and self.measure_.dim > 1:  # no median in several dimensions
            return self.nodes_[np.argmax(self.weights_)]
        median = self.measure_.ppf(np.full((1, self.measure_.dim), 0.5))[0]
        return median[0] if self.measure_.dim == 1 else median
