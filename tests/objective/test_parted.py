"""An objective whose rows live in parts is the objective of all rows, however they are cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

from infinitask.features import task_features
from infinitask.kernels import ConstantTask, Gaussian, TaskKernel
from infinitask.losses import CostSensitiveHinge, EpsilonInsensitive, Expectile, LevelSet, Loss, MQuantile, Pinball
from infinitask.objective import Integral, Objective, PartedRows, Parts, Smoothing, Sums, Visit, added
from infinitask.solvers import Eigenbasis, solve
from infinitask.tasks.base import Order
from tests.support.arrays import as_like
from tests.support.each import each

Floats = np.ndarray[Any, Any]
N, INPUTS, COLUMNS = 60, 5, 6


@dataclass(frozen=True)
class Case:
    """A loss with a bias of one kind, perhaps non-crossing; ``ridge`` is λ_b, 0 for a free bias."""

    name: str
    loss: Loss
    bias: TaskKernel | None = None
    ridge: float = 0.2
    noncrossing: float = 0.0
    linear: bool = False

    def __repr__(self) -> str:
        return self.name


WIDE, NARROW = Gaussian(gamma=1.0), Gaussian(gamma=8.0)
CASES = [
    Case("quantile", Pinball()),
    Case("quantile, separate bias, non-crossing", Pinball(), WIDE, noncrossing=0.5),
    Case("quantile, free bias", Pinball(), ConstantTask(), ridge=0.0),
    Case("quantile, free bias, non-crossing", Pinball(), ConstantTask(), ridge=0.0, noncrossing=0.5),
    Case("M-quantile", MQuantile(0.3), WIDE),
    Case("expectile, non-crossing", Expectile(), noncrossing=0.5),
    Case("expectile, free bias", Expectile(), ConstantTask(), ridge=0.0),
    Case("cost-sensitive", CostSensitiveHinge(), WIDE),
    Case("cost-sensitive, free bias", CostSensitiveHinge(), ConstantTask(), ridge=0.0),
    Case("level set", LevelSet(), NARROW, linear=True),
    Case("level set, free thresholds", LevelSet(), ConstantTask(), ridge=0.0, linear=True),
    Case("epsilon-insensitive", EpsilonInsensitive(), WIDE),
]


each_case = each("case", CASES, ids=repr)


class Cut(Parts):
    """Rows in memory, cut at given places."""

    def __init__(self, whole: Objective, cuts: tuple[int, ...]) -> None:
        self.whole, self.cuts = whole, (0, *cuts, int(whole.rows.shape[0]))
        self.n, self.visits = int(whole.rows.shape[0]), 0

    def __iter__(self) -> Iterator[Objective]:
        for start, stop in pairwise(self.cuts):
            rows = slice(start, stop)
            terms = tuple(replace(term, targets=term.targets_of(rows)) for term in self.whole.integrals)
            weight = self.whole.sample_weight[rows]
            yield replace(self.whole, rows=self.whole.rows[rows, :], sample_weight=weight, integrals=terms)

    def total(self, visit: Visit, *arguments: Any) -> Sums:
        self.visits += 1
        return added(*(visit(part, *arguments) for part in self))


def columns_and_features(case: Case, xp: Any = None, seed: int = 0) -> tuple[Objective, Objective, Floats]:
    """The objective in columns K, the same in features Φ = K M, and M."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(N, 2))
    K = np.cos(x @ rng.normal(scale=2.0, size=(2, COLUMNS)) + rng.uniform(0.0, 6.0, size=COLUMNS))
    M = rng.normal(size=(COLUMNS, INPUTS))
    y: Floats | None = np.sin(3.0 * x[:, :1]) + rng.normal(size=(N, 1))
    if isinstance(case.loss, CostSensitiveHinge):
        y = np.sign(y)
    elif isinstance(case.loss, LevelSet):
        y = None
    low, high = case.loss.support or case.loss.domain
    points, weights = leggauss(7)
    theta, weights = low + (high - low) * (points + 1.0) / 2.0, weights / 2.0
    orders = (0, 1) if case.noncrossing else (0,)
    psi = task_features(NARROW, theta, orders).values
    bias = None if case.bias is None else task_features(case.bias, theta, orders).values
    omega = rng.uniform(0.5, 2.0, size=N)
    omega /= omega.sum()
    like = np.empty(0) if xp is None else xp.empty(0, dtype=xp.float64)

    def there(values: Any) -> Any:
        return None if values is None else as_like(values, like)

    def term(loss: Loss, order: int, targets: Floats | None) -> Integral:
        arrays = theta, weights, psi[order], None if bias is None else bias[order], targets
        return Integral(loss, *map(there, arrays))

    terms = [term(case.loss, 0, y)]
    if case.noncrossing:
        terms.append(term(Order(case.noncrossing).term(0.3).loss, 1, None))
    linear = bias[0].T @ weights if case.linear and bias is not None else None
    rest = there(omega), tuple(terms), 0.05, case.ridge, linear
    return Objective(there(K), *rest), Objective(there(K @ M), *rest), M


def parted(case: Case, cuts: tuple[int, ...], xp: Any = None) -> tuple[Objective, Objective]:
    columns, whole, M = columns_and_features(case, xp)
    host = columns_and_features(case)[1]  # the sample is all rows
    return replace(host, elsewhere=PartedRows(Cut(columns, cuts), M)), whole


def point(objective: Any, seed: int = 1) -> Floats:
    return 0.5 * np.random.default_rng(seed).normal(size=objective.size)


def assert_same(one: Any, other: Any, tolerance: float = 1e-11) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


CUTS = [(), (1,), (30,), (7, 8, 50), tuple(range(1, N))]


@each_case
@each("cuts", CUTS, ids=lambda cuts: f"{len(cuts)} cuts")
@each("kappa", [0.0, 0.3])
def test_value_gradient_and_dual_are_those_of_all_rows(case: Case, cuts: tuple[int, ...], kappa: float) -> None:
    ours, whole = parted(case, cuts)
    assert ours.shape == whole.shape
    assert (ours.size, ours.n_pairs) == (whole.size, whole.n_pairs)
    smoothing = Smoothing((kappa,) * len(whole.integrals))
    z = point(whole)
    assert_same(ours.evaluate(z, smoothing), whole.evaluate(z, smoothing))


@each_case
def test_every_library_gives_the_same(case: Case, xp: Any) -> None:
    ours, _ = parted(case, (13, 40), xp)
    _, whole = parted(case, ())
    smoothing = Smoothing((0.3,) * len(whole.integrals))
    z = point(whole)
    assert_same(ours.evaluate(z, smoothing), whole.evaluate(z, smoothing), 1e-8)


@each_case
def test_the_dual_point_at_rest_is_that_of_all_rows(case: Case) -> None:
    ours, whole = parted(case, (20,))
    assert ours.resting_loss() == pytest.approx(whole.resting_loss(), abs=1e-12)
    mine, theirs = ours.origin(), whole.origin()
    assert (mine is None) == (theirs is None)
    if mine is not None and theirs is not None:
        assert_same(mine, theirs)


@each_case
def test_turned_unknowns_give_the_same_objective(case: Case) -> None:
    ours, whole = parted(case, (20, 21))
    rng = np.random.default_rng(2)
    (r, s), b = ours.shape, ours.bias_size

    def turn(k: int) -> Floats:
        return np.linalg.qr(rng.normal(size=(k, k)))[0]

    U, V, V_b = turn(r), turn(s), turn(b) if b else None
    smoothing = Smoothing((0.3,) * len(whole.integrals))
    z = point(whole)
    C, c = z[: r * s].reshape(r, s), z[r * s :]
    turned = np.concatenate([(U.T @ C @ V).ravel(), c if V_b is None else V_b.T @ c])
    expected = whole.evaluate(z, smoothing)
    for once in (
        ours.rotated(U, V, V_b),
        ours.rotated(U, V, V_b).rotated(None, np.eye(s), None if V_b is None else np.eye(b)),
    ):
        found = once.evaluate(turned, smoothing)
        assert found.primal == pytest.approx(expected.primal, rel=1e-12)
        assert found.dual_data == pytest.approx(expected.dual_data, rel=1e-10, abs=1e-12)
        G, g = expected.gradient[: r * s].reshape(r, s), expected.gradient[r * s :]
        back = np.concatenate([(U.T @ G @ V).ravel(), g if V_b is None else V_b.T @ g])
        np.testing.assert_allclose(found.gradient, back, rtol=1e-10, atol=1e-12)
    assert_same(
        whole.rotated(U, V, V_b).evaluate(turned, smoothing), ours.rotated(U, V, V_b).evaluate(turned, smoothing)
    )


@each_case
def test_the_gap_is_certified_for_all_rows(case: Case) -> None:
    ours, whole = parted(case, (25,))
    tol = 1e-3
    basis = Eigenbasis.of(replace(ours, elsewhere=None)).over(ours)
    found = solve(ours, solver="lbfgs", tol=tol, max_iter=5_000, basis=basis)
    best = solve(whole, tol=1e-6, max_iter=20_000)
    assert found.converged
    assert found.dual <= best.objective + 1e-9
    assert found.objective >= best.dual - 1e-9
    scale = max(abs(best.objective), whole.typical_loss if np.isfinite(whole.typical_loss) else 0.0)
    assert found.objective - best.objective <= tol * scale + 1e-9


def test_nothing_is_asked_where_losses_rest_at_zero() -> None:
    ours, _ = parted(CASES[0], (25,))
    assert ours.resting_loss() == 0.0
    assert ours.elsewhere is not None
    assert ours.elsewhere.parts.visits == 0  # type: ignore[attr-defined]
