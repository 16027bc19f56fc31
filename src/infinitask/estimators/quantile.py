"""Infinite quantile regression: the whole conditional quantile function from one fit."""

from __future__ import annotations

from typing import Any

from infinitask.estimators._checks import check_number
from infinitask.estimators._quantiles import QuantileRegression
from infinitask.losses import Loss, MQuantile, Pinball

__all__ = ["InfiniteQuantileRegressor"]


class InfiniteQuantileRegressor(QuantileRegression):
    """min_h ∫ E max(θr, (θ−1)r) dθ + λ_nc ∫ E (−∂h/∂θ)₊ dθ + (λ/2)‖h‖² + (λ_b/2)‖b‖², r = y − h(x)(θ) − b(θ).

    One fit learns the quantile of every level θ ∈ (0, 1), in order; any level can be asked for afterwards.

    Parameters
    ----------
    noncrossing : float, "rearrange" or "hard", default=1.0
        λ_nc, the weight of the penalty on quantile curves that cross. It needs a task kernel with a derivative.
        "rearrange": weight 1 (0 for a kernel without a derivative), and every prediction comes from the quantile
        function of its x sorted on a fine grid of levels: no two levels cross, for any x.
        "hard": ∂h/∂θ ≥ 0 for all θ at the training inputs is a constraint of the fit, and proved (kernels "rbf" and
        "matern52"); see ``smallest_slope_``.
    smoothing : float, default=0.0
        κ of M-quantiles: the kink of the pinball loss is rounded on [−κ, κ]. A statistical choice; the solver needs
        none.
    quantiles : float or array, default=0.5
        The levels that ``predict`` answers when none are asked for.
    {parameters}

    Attributes
    ----------
    calibration_ : ConformalCalibration
        After :meth:`conformalize` only.
    smallest_slope_ : float
        Only for ``noncrossing="hard"``: ∂h/∂θ is proved to be at least this, for all θ and all training inputs.
    {attributes}

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteQuantileRegressor(alpha=1e-4).fit(X, y)
    >>> model.predict(X, quantiles=[0.05, 0.5, 0.95]).shape
    (100, 3)
    >>> model.dual_gap_ <= 1e-4
    True
    >>> model.predict_distribution(X)
    QuantileDistribution(n=100, 1001 levels from 0 to 1)
    """

    _rearranged_weight = 1.0

    def __init__(
        self,
        *,
        noncrossing: float | str = 1.0,
        smoothing: float = 0.0,
        quantiles: Any = 0.5,
        kernel: Any = "rbf",
        gamma: Any = "median",
        task_kernel: Any = "rbf",
        task_gamma: Any = None,
        bias_kernel: Any = "task",
        alpha: float = 1e-3,
        alpha_bias: float | None = None,
        measure: Any = None,
        quadrature: Any = "gauss-legendre",
        n_nodes: int | None = None,
        features: Any = "auto",
        rank: int | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 10_000,
        device: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self._store(locals())

    def _loss(self) -> Loss:
        smoothing = check_number("smoothing", self.smoothing, low=0.0, open_low=False)
        return MQuantile(smoothing) if smoothing > 0.0 else Pinball()
