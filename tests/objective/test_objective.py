"""The objective is the sum it is written as, whatever library, block size or basis it is computed in."""

from __future__ import annotations

import multiprocessing
import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

from infinitask._base import threads as _threads
from infinitask.features import task_features
from infinitask.kernels import ConstantTask, Diagonal, Gaussian, TaskKernel
from infinitask.losses import CostSensitiveHinge, EpsilonInsensitive, Expectile, LevelSet, Loss, MQuantile, Pinball
from infinitask.objective import Evaluation, Integral, Objective, Smoothing
from infinitask.solvers import _newton, solve
from infinitask.solvers._base import DualPoint
from infinitask.solvers._basis import Eigenbasis, Metric
from infinitask.solvers._newton import NewtonSystem, hessian_product, pairs
from infinitask.tasks.base import Order
from tests.support.arrays import as_like, to_host
from tests.support.each import each

Floats = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """A small objective, and a name for it."""

    name: str
    loss: Loss
    kernel: TaskKernel
    noncrossing: float = 0.0
    crossing: str = "hinge"
    bias: TaskKernel | None = None
    linear: bool = False
    weighted: bool = False
    elsewhere: bool = False
    """Whether the penalty on crossing looks at rows that the risk leaves out, and at some of the others."""

    def __repr__(self) -> str:
        return self.name

    def objective(self, n: int = 30, m: int = 7, r: int = 4, seed: int = 0) -> Objective:
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1.0, 1.0, size=(n, 2))
        rows = np.cos(x @ rng.normal(scale=2.0, size=(2, r)) + rng.uniform(0.0, 6.0, size=r))
        # a noise that outweighs the signal, so that slopes of both signs and curves that cross are there
        y: Floats | None = np.sin(3.0 * x[:, :1]) + rng.normal(size=(n, 1))
        if isinstance(self.loss, CostSensitiveHinge):
            y = np.sign(y)
        elif isinstance(self.loss, LevelSet):
            y = None
        low, high = self.loss.support or self.loss.domain
        points, weights = leggauss(m)
        theta, weights = low + (high - low) * (points + 1.0) / 2.0, weights / 2.0
        orders = (0, 1) if self.noncrossing else (0,)
        psi = task_features(self.kernel, theta, orders).values
        psi_bias = None if self.bias is None else task_features(self.bias, theta, orders).values
        terms = [Integral(self.loss, theta, weights, psi[0], None if psi_bias is None else psi_bias[0], y)]
        if self.noncrossing:
            bias_cols = None if psi_bias is None else psi_bias[1]
            terms.append(
                Integral(Order(self.noncrossing, self.crossing).term(0.3).loss, theta, weights, psi[1], bias_cols)
            )
        omega = rng.uniform(0.5, 2.0, size=n) if self.weighted else np.ones(n)
        if self.elsewhere:
            omega[1 + n // 2 :] = 0.0
            seen = rng.uniform(0.5, 2.0, size=n) * (np.arange(n) >= n // 3)
            terms[1] = replace(terms[1], row_weight=seen / seen.sum())
        linear = psi_bias[0].T @ weights if self.linear and psi_bias is not None else None
        return Objective(rows, omega / omega.sum(), tuple(terms), 0.05, 0.2, linear)


WIDE, NARROW = Gaussian(gamma=1.0), Gaussian(gamma=8.0)
CASES = [
    Case("quantile with non-crossing", Pinball(), NARROW, noncrossing=0.5),
    Case("quantile with a bias of its own kernel", Pinball(), NARROW, noncrossing=0.5, bias=WIDE, weighted=True),
    Case("quantile with non-crossing elsewhere", Pinball(), NARROW, noncrossing=0.5, bias=WIDE, elsewhere=True),
    Case("M-quantile with a constant bias", MQuantile(0.3), WIDE, bias=ConstantTask()),
    Case("M-quantile with smoothed non-crossing", MQuantile(0.3), NARROW, noncrossing=0.5, crossing="smoothed"),
    Case("expectile with squared non-crossing", Expectile(), NARROW, noncrossing=0.5, crossing="squared", bias=WIDE),
    Case("expectile with sample weights", Expectile(), WIDE, weighted=True),
    Case("cost-sensitive", CostSensitiveHinge(), WIDE, bias=WIDE),
    Case("smoothed cost-sensitive", CostSensitiveHinge(0.5), WIDE, bias=WIDE),
    Case("level set with its linear term", LevelSet(), WIDE, bias=NARROW, linear=True),
    Case("epsilon-insensitive", EpsilonInsensitive(), WIDE, weighted=True),
    Case("one task at a time", Pinball(), Diagonal()),
    Case("one task at a time with a shared bias", Pinball(), Diagonal(), bias=WIDE),
]
KAPPA = 1.0


each_case = each("case", CASES, ids=repr)


def point(objective: Objective, seed: int = 0) -> Floats:
    return 0.5 * np.random.default_rng(seed).normal(size=objective.size)


def around_zero(objective: Objective, kappa: float = KAPPA) -> Smoothing:
    return Smoothing((kappa,) * len(objective.integrals))


def around_duals(objective: Objective, kappa: float = KAPPA) -> Smoothing:
    """An envelope around the dual point of another z."""
    smoothing = around_zero(objective, kappa)
    return replace(smoothing, centre=objective.duals(point(objective, 5), smoothing))


def fields(objective: Objective, z: Floats) -> list[Floats]:
    """H of every integral, from the formula of the module."""
    r, s = objective.shape
    C, c = z[: r * s].reshape(r, s), z[r * s :]
    found = []
    for term in objective.integrals:
        H = np.einsum("ia,ab,jb->ij", objective.rows, C, term.cols)
        found.append(H if term.bias_cols is None else H + np.einsum("jb,b->j", term.bias_cols, c))
    return found


def duals(objective: Objective, z: Floats, smoothing: Smoothing) -> list[Floats]:
    """u of every integral, for all pairs at once."""
    found = []
    for t, (term, H) in enumerate(zip(objective.integrals, fields(objective, z), strict=True)):
        centre = None if smoothing.centre is None else smoothing.centre[t]
        kappa = smoothing.kappa[t] * term.loss.width(term.theta) if smoothing.kappa[t] else 0.0
        found.append(term.loss.pointwise(term.theta, term.targets, H, kappa, centre).dual)
    return found


def penalty(objective: Objective, z: Floats) -> float:
    r, s = objective.shape
    C, c = z[: r * s], z[r * s :]
    linear = 0.0 if objective.bias_linear is None else float(objective.bias_linear @ c)
    return linear + 0.5 * objective.alpha * float(C @ C) + 0.5 * objective.alpha_bias * float(c @ c)


def summed(objective: Objective, values: list[Floats]) -> float:
    """Σ_t Σ_ij ω_i w_j values_tij."""
    return sum(
        float(np.einsum("i,j,ij->", objective.weight_of(term), term.weights, v))
        for term, v in zip(objective.integrals, values, strict=True)
    )


def dual_value(objective: Objective, z: Floats, evaluation: Evaluation) -> float:
    z_u = z - evaluation.gradient / objective.ridge
    return evaluation.dual_data - 0.5 * float((objective.ridge * z_u) @ z_u)


def dense_hessian(objective: Objective, z: Floats, smoothing: Smoothing) -> Floats:
    """Λ + Zᵀ W Z, pair by pair."""
    H = np.diag(objective.ridge)
    for t, (term, field) in enumerate(zip(objective.integrals, fields(objective, z), strict=True)):
        centre = None if smoothing.centre is None else smoothing.centre[t]
        kappa = smoothing.kappa[t] * term.loss.width(term.theta) if smoothing.kappa[t] else 0.0
        curved = term.loss.curvature(term.theta, term.targets, field, kappa, centre)
        for i, j in zip(*np.nonzero(curved), strict=True):
            row = np.kron(objective.rows[i], term.cols[j])
            if objective.bias_size:
                bias = np.zeros(objective.bias_size) if term.bias_cols is None else term.bias_cols[j]
                row = np.concatenate([row, bias])
            H += objective.weight_of(term)[i] * term.weights[j] * curved[i, j] * np.outer(row, row)
    return H


def assert_same(a: Evaluation, b: Evaluation, tolerance: float = 1e-12) -> None:
    for one, other in zip(a, b, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


# ------------------------------------------------------------------------------------------------- the value
@each_case
def test_primal_is_the_sum_as_written(case: Case) -> None:
    objective = case.objective()
    z = point(objective)
    H = fields(objective, z)
    values = [t.loss.value(t.theta, t.targets, h) for t, h in zip(objective.integrals, H, strict=True)]
    expected = summed(objective, values) + penalty(objective, z)
    for kappa in (0.0, KAPPA):
        assert objective.evaluate(z, around_zero(objective, kappa)).primal == pytest.approx(expected, rel=1e-13)


@each_case
def test_without_smoothing_there_is_no_slack(case: Case) -> None:
    objective = case.objective()
    found = objective.evaluate(point(objective), around_zero(objective, 0.0))
    assert found.smoothed == pytest.approx(found.primal, rel=1e-13)
    np.testing.assert_allclose(found.slack, 0.0, atol=1e-14)


@each_case
def test_smoothed_value_is_below_the_primal_and_rises_to_it(case: Case) -> None:
    objective = case.objective()
    z = point(objective)
    found = [objective.evaluate(z, around_zero(objective, kappa)) for kappa in (1.0, 0.1, 1e-3, 1e-9)]
    smoothed = [e.smoothed for e in found]
    assert smoothed == sorted(smoothed)
    assert smoothed[0] < found[0].primal
    assert smoothed[-1] == pytest.approx(found[-1].primal, abs=1e-7)
    assert min(min(e.slack) for e in found) >= -1e-15


# --------------------------------------------------------------------------------------------- the derivatives
@each_case
@each("smooth", [around_zero, around_duals])
def test_gradient_is_the_finite_difference(case: Case, smooth: Any) -> None:
    objective = case.objective()
    smoothing, z = smooth(objective), point(objective)
    gradient = objective.evaluate(z, smoothing).gradient
    step = 1e-6
    for k in range(objective.size):
        e = np.zeros(objective.size)
        e[k] = step
        up, down = (objective.evaluate(z + d, smoothing).smoothed for d in (e, -e))
        assert gradient[k] == pytest.approx((up - down) / (2 * step), abs=1e-6)


@each_case
@each("smooth", [around_zero, around_duals])
def test_hessian_product_is_the_finite_difference_of_the_gradient(case: Case, smooth: Any) -> None:
    objective = case.objective()
    smoothing, z = smooth(objective), point(objective)
    v = point(objective, 1)
    step = 1e-7
    up, down = (objective.evaluate(z + d * v, smoothing).gradient for d in (step, -step))
    product = hessian_product(objective, z, smoothing, v)
    np.testing.assert_allclose(product, (up - down) / (2 * step), atol=1e-6)
    # more than the ridge is at work
    assert np.linalg.norm(product - objective.ridge * v) > 0.1 * np.linalg.norm(product)


@each_case
@each("smooth", [around_zero, around_duals])
def test_hessian_is_the_ridge_and_the_curved_pairs(case: Case, smooth: Any) -> None:
    objective = case.objective()
    smoothing, z = smooth(objective), point(objective)
    expected = dense_hessian(objective, z, smoothing)
    found = np.stack([hessian_product(objective, z, smoothing, e) for e in np.eye(objective.size)])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    # the pairs carry the same weight
    system = NewtonSystem(objective)
    active = system.active(z, smoothing)
    v = point(objective, 1)
    np.testing.assert_allclose(system.apply(active, v), expected @ v, atol=1e-12)


@each_case
@each("smooth", [around_zero, around_duals])
def test_curvature_of_the_nodes_is_the_weighted_sum_over_rows(case: Case, smooth: Any) -> None:
    objective = case.objective()
    smoothing, z = smooth(objective), point(objective)
    found = objective.node_curvature(z, smoothing)
    assert len(found) == len(objective.integrals)
    for t, (total, term, H) in enumerate(zip(found, objective.integrals, fields(objective, z), strict=True)):
        centre = None if smoothing.centre is None else smoothing.centre[t]
        kappa = smoothing.kappa[t] * term.loss.width(term.theta) if smoothing.kappa[t] else 0.0
        curved = term.loss.curvature(term.theta, term.targets, H, kappa, centre)
        np.testing.assert_allclose(total, (objective.weight_of(term) @ curved) * term.weights, atol=1e-13)
        assert np.any(total > 0.0)


def test_a_node_of_weight_zero_does_no_harm() -> None:
    objective = CASES[0].objective()
    first, second = objective.integrals
    weights = np.concatenate([[0.0], first.weights[1:]])
    zero = replace(objective, integrals=(replace(first, weights=weights), replace(second, weights=weights)))
    without = tuple(
        replace(t, theta=t.theta[1:], weights=t.weights[1:], cols=t.cols[1:], targets=t.targets)
        for t in objective.integrals
    )
    left = replace(objective, integrals=without)
    z, smoothing = point(objective), around_zero(objective)
    assert_same(zero.evaluate(z, smoothing), left.evaluate(z, smoothing))
    basis, other = Eigenbasis.of(zero), Eigenbasis.of(left)
    a, b = (each.back(each.metric(each.forth(z), smoothing).solve(each.forth(z))) for each in (basis, other))
    np.testing.assert_allclose(a, b, atol=1e-9 * np.max(np.abs(b)))
    a, b = (solve(o, tol=1e-9).objective for o in (zero, left))
    assert a == pytest.approx(b, rel=2e-9)


def test_integrals_may_have_nodes_of_their_own() -> None:
    objective = CASES[0].objective()
    first, second = objective.integrals
    fewer = replace(second, theta=second.theta[:3], weights=second.weights[:3], cols=second.cols[:3])
    # a node whose weight is 0 might as well not be there
    same = replace(second, weights=np.concatenate([second.weights[:3], np.zeros(4)]))
    a, b = (replace(objective, integrals=(first, other)) for other in (fewer, same))
    z, smoothing = point(objective), around_zero(objective)
    assert_same(a.evaluate(z, smoothing), b.evaluate(z, smoothing))
    assert [v.size for v in a.node_curvature(z, smoothing)] == [7, 3]
    np.testing.assert_allclose(hessian_product(a, z, smoothing, z), hessian_product(b, z, smoothing, z), atol=1e-12)
    found = [solve(o, tol=1e-9) for o in (a, b)]
    assert all(f.converged for f in found)
    assert found[0].objective == pytest.approx(found[1].objective, rel=2e-9)


# ---------------------------------------------------------------------------------------------------- Newton
def diagonal(objective: Objective, entries: Floats) -> Metric:
    """A metric that is diagonal in the unknowns themselves."""
    r, s = objective.shape
    return Metric(np.eye(s), entries[: r * s].reshape(r, s), np.diag(entries[r * s :]))


@each_case
@each("smooth", [around_zero, around_duals])
@each("kappa", [0.2, 1.0, 10.0])
def test_all_ways_solve_the_same_system(case: Case, smooth: Any, kappa: float) -> None:
    objective = case.objective()
    system, smoothing = NewtonSystem(objective), smooth(objective, kappa)
    # The first point with active pairs: the basis of ψ, and so the field of a point, depends on the version of LAPACK.
    z = next(z for z in (point(objective, seed) for seed in range(20)) if system.active(z, smoothing).row.size > 0)
    active = system.active(z, smoothing)
    H = dense_hessian(objective, z, smoothing)
    g = objective.evaluate(z, smoothing).gradient
    expected = -np.linalg.solve(H, g)
    scale = np.linalg.norm(expected)
    np.testing.assert_allclose(system.by_pairs(active, g), expected, atol=1e-9 * scale)
    np.testing.assert_allclose(system.by_unknowns(z, smoothing, g), expected, atol=1e-9 * scale)
    metric = diagonal(objective, np.diag(H))
    found, _ = system.direction(z, smoothing, g, metric)
    np.testing.assert_allclose(found, expected, atol=1e-9 * scale)
    # conjugate gradients promise a tenth of the gradient, and a descent
    direction = system.by_products(z, smoothing, g, metric)
    left = g + H @ direction
    assert np.linalg.norm(left) <= 0.1 * np.linalg.norm(g) * (1 + 1e-9)
    assert g @ direction < 0.0


@each_case
def test_push_is_the_field_at_the_pairs_and_pull_its_transpose(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_newton, "PAIRS_AT_A_TIME", 7)  # several of them, the last one shorter
    objective = case.objective()
    system = NewtonSystem(objective)
    rng = np.random.default_rng(2)
    nodes = sum(term.weights.size for term in objective.integrals)
    row, node = rng.integers(30, size=41), rng.integers(nodes, size=41)
    v, x = point(objective, 1), rng.normal(size=41)
    pushed = system.push(row, node, v)
    np.testing.assert_allclose(pushed, np.concatenate(fields(objective, v), axis=1)[row, node], atol=1e-12)
    assert pushed @ x == pytest.approx(v @ system.pull(row, node, x), abs=1e-12)
    nowhere = np.zeros(0, dtype=int)
    assert system.push(nowhere, nowhere, v).shape == (0,)


def test_nodes_that_do_not_talk_are_solved_by_themselves() -> None:
    for case in CASES:
        groups = np.unique(NewtonSystem(case.objective()).component).size
        assert groups == (7 if isinstance(case.kernel, Diagonal) else 1)


def test_without_curved_pairs_newton_steps_along_the_ridge() -> None:
    objective = CASES[0].objective()
    system, z = NewtonSystem(objective), point(objective)
    nowhere = Smoothing((0.0, 0.0))
    g = objective.evaluate(z, nowhere).gradient
    found, _ = system.direction(z, nowhere, g, diagonal(objective, objective.ridge))
    np.testing.assert_array_equal(found, -g / objective.ridge)


# ------------------------------------------------------------------------------------------------- the dual
@each_case
def test_dual_term_is_the_sum_of_the_conjugates(case: Case) -> None:
    objective = case.objective()
    for smoothing in (around_zero(objective, 0.0), around_zero(objective), around_duals(objective)):
        z = point(objective)
        u = duals(objective, z, smoothing)
        terms = [t.loss.dual(t.theta, t.targets, u) for t, u in zip(objective.integrals, u, strict=True)]
        assert objective.evaluate(z, smoothing).dual_data == pytest.approx(summed(objective, terms), abs=1e-12)


@each_case
def test_only_what_is_smoothed_has_a_dual_point_to_keep(case: Case) -> None:
    objective = case.objective()
    z = point(objective)
    some = Smoothing((KAPPA, 0.0)[: len(objective.integrals)])
    for smoothing in (around_zero(objective, 0.0), some, around_zero(objective), around_duals(objective)):
        found = objective.duals(z, smoothing)
        for kappa, kept, u in zip(smoothing.kappa, found, duals(objective, z, smoothing), strict=True):
            if kappa == 0.0:
                assert kept is None
            else:
                assert kept is not None
                np.testing.assert_allclose(kept, u, atol=1e-12)


def test_no_centre_is_a_centre_of_zero() -> None:
    objective = CASES[0].objective()
    z, v = point(objective), point(objective, 1)
    first, second = around_duals(objective).centre or ()
    zero = np.zeros_like(first)
    for some, whole in (((None, second), (zero, second)), ((first, None), (first, zero)), ((None, None), None)):
        a, b = (replace(around_zero(objective), centre=centre) for centre in (some, whole))
        assert_same(objective.evaluate(z, a), objective.evaluate(z, b))
        np.testing.assert_allclose(hessian_product(objective, z, a, v), hessian_product(objective, z, b, v), atol=1e-13)
        for one, other in zip(pairs(objective, z, a), pairs(objective, z, b), strict=True):
            np.testing.assert_array_equal(one.row, other.row)
            np.testing.assert_array_equal(one.node, other.node)
    # where nothing is smoothed a centre has no say
    unsmoothed = Smoothing((0.0, KAPPA))
    assert_same(
        objective.evaluate(z, replace(unsmoothed, centre=(None, second))),
        objective.evaluate(z, replace(unsmoothed, centre=(first, second))),
    )


@each_case
def test_gap_splits_into_slack_and_optimisation_error(case: Case) -> None:
    objective = case.objective()
    for smoothing in (around_zero(objective), around_duals(objective)):
        z = point(objective)
        found = objective.evaluate(z, smoothing)
        error = 0.5 * float((found.gradient / objective.ridge) @ found.gradient)
        gap = found.primal - dual_value(objective, z, found)
        assert gap == pytest.approx(sum(found.slack) + error, rel=1e-10)


@each_case
def test_weak_duality(case: Case) -> None:
    objective = case.objective()
    best = solve(objective, solver="newton", tol=1e-9)
    upper = [best.objective]
    lower = []
    for seed in range(20):
        z = point(objective, seed) * 2.0 ** -(seed % 6) + (best.z if seed % 2 else 0.0)
        for kappa in (0.0, 1e-3, 1.0):
            for smooth in (around_zero, around_duals):
                found = objective.evaluate(z, smooth(objective, kappa))
                upper.append(found.primal)
                lower.append(dual_value(objective, z, found))
    assert max(lower) <= min(upper) + 1e-12
    assert min(upper) == best.objective


def test_the_best_of_a_segment_is_not_below_its_points() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        ridge = rng.uniform(0.1, 2.0, size=6)
        a, b = (DualPoint(float(rng.normal()), rng.normal(size=6)) for _ in range(2))
        best = a.mixed(b, ridge).value(ridge)
        for s in np.linspace(0.0, 1.0, 21):
            between = DualPoint((1 - s) * a.data + s * b.data, (1 - s) * a.z + s * b.z)
            assert best >= between.value(ridge) - 1e-12
    same = DualPoint(1.0, np.ones(2))
    assert same.mixed(DualPoint(2.0, np.ones(2)), np.ones(2)).data == 2.0
    assert DualPoint(2.0, np.ones(2)).mixed(same, np.ones(2)).data == 2.0


@each_case
def test_mixed_dual_points_of_an_objective_stay_below_the_optimum(case: Case) -> None:
    objective = case.objective()
    best = solve(objective, solver="newton", tol=1e-9).objective
    points = []
    for seed in range(6):
        z = point(objective, seed)
        found = objective.evaluate(z, around_zero(objective))
        points.append(DualPoint(found.dual_data, z - found.gradient / objective.ridge))
    mixed = points[0]
    for other in points[1:]:
        before = mixed.value(objective.ridge)
        mixed = mixed.mixed(other, objective.ridge)
        assert mixed.value(objective.ridge) >= max(before, other.value(objective.ridge)) - 1e-13
    assert mixed.value(objective.ridge) <= best + 1e-12


# -------------------------------------------------------------------------------------- what must not matter
@each_case
def test_size_of_the_blocks_does_not_matter(case: Case) -> None:
    whole = replace(case.objective(), block_entries=10**9)
    z, v = point(whole), point(whole, 1)
    smoothing = around_duals(whole)
    assert len(list(whole.blocks())) == 1
    for entries in (1, 23, 100):
        cut = replace(whole, block_entries=entries)
        assert len(list(cut.blocks())) > 1
        assert_same(cut.evaluate(z, smoothing), whole.evaluate(z, smoothing))
        np.testing.assert_allclose(
            hessian_product(cut, z, smoothing, v), hessian_product(whole, z, smoothing, v), atol=1e-12
        )
        for a, b in zip(cut.duals(z, smoothing), whole.duals(z, smoothing), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
        for a, b in zip(pairs(cut, z, smoothing), pairs(whole, z, smoothing), strict=True):
            np.testing.assert_array_equal(a.row, b.row)
            np.testing.assert_array_equal(a.node, b.node)
            np.testing.assert_allclose(a.weight, b.weight, rtol=1e-12)


@each_case
def test_blocks_are_all_rows_once_and_not_larger_than_allowed(case: Case) -> None:
    for n, entries in ((1, 1), (30, 1), (30, 22), (31, 70), (30, 10**9)):
        objective = replace(case.objective(n=n), block_entries=entries)
        blocks = list(objective.blocks())
        assert [i for block in blocks for i in range(n)[block]] == list(range(n))
        assert all((b.stop - b.start) * 7 <= max(entries, 7) for b in blocks)


class Backwards:
    """Visits the groups one by one, the last one first."""

    def map(self, visit: Any, groups: list[Any]) -> list[Any]:
        return [visit(group) for group in reversed(groups)][::-1]


@each_case
def test_number_of_threads_does_not_matter(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    objective = replace(case.objective(n=200), block_entries=21)
    smoothing, z = around_duals(objective), point(objective)
    expected = objective.evaluate(z, smoothing)
    for pool in (None, ThreadPoolExecutor(1), ThreadPoolExecutor(3), ThreadPoolExecutor(20), Backwards()):
        asked: list[int] = []

        def this(pool: Any = pool, asked: list[int] = asked) -> Any:
            asked.append(1)
            return pool

        monkeypatch.setattr(_threads, "_pool", this)
        found = objective.evaluate(z, smoothing)
        assert asked, "no thread was wanted"
        if isinstance(pool, ThreadPoolExecutor):
            pool.shutdown()
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    # one block at a time, in order, is the same up to the order of a sum
    assert_same(replace(objective, block_entries=10**9).evaluate(z, smoothing), expected)


def test_threads_do_not_disturb_each_other() -> None:
    objective = replace(CASES[1].objective(n=200), block_entries=21)
    smoothing = around_zero(objective)
    points = [point(objective, seed) for seed in range(8)]
    expected = [objective.evaluate(z, smoothing) for z in points]
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda z: objective.evaluate(z, smoothing), points))
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # that forking with threads may hang
@pytest.mark.filterwarnings("ignore:os.fork")  # jax, where it was imported, warns of every fork
def test_a_forked_process_has_threads_of_its_own() -> None:
    objective = replace(CASES[0].objective(n=200), block_entries=21)
    smoothing, z = around_zero(objective), point(objective)
    objective.evaluate(z, smoothing)  # the parent has its threads
    child = multiprocessing.get_context("fork").Process(target=objective.evaluate, args=(z, smoothing))
    child.start()
    child.join(3.0)
    if child.is_alive():
        child.kill()
        child.join()
    assert child.exitcode == 0


@each_case
def test_rotation_does_not_matter(case: Case) -> None:
    objective = case.objective()
    basis = Eigenbasis.of(objective)
    z = point(objective)
    back = basis.back(z)
    np.testing.assert_allclose(np.linalg.norm(back), np.linalg.norm(z))
    for smoothing in (around_zero(objective), around_duals(objective)):
        here, there = basis.objective.evaluate(z, smoothing), objective.evaluate(back, smoothing)
        assert_same(here._replace(gradient=basis.back(here.gradient), dual_z=basis.back(here.dual_z)), there)


def test_in_the_eigenbasis_a_constant_curvature_is_diagonal() -> None:
    objective = Case("", Expectile(), WIDE, weighted=True).objective()
    middle = replace(objective.integrals[0], theta=np.full(7, 0.5))
    basis = Eigenbasis.of(replace(objective, integrals=(middle,)))
    z, smoothing = point(objective), around_zero(objective, 0.0)
    H = np.stack([hessian_product(basis.objective, z, smoothing, e) for e in np.eye(objective.size)])
    np.testing.assert_allclose(H, np.diag(np.diag(H)), atol=1e-12)
    metric = basis.metric(z, smoothing)
    np.testing.assert_allclose(H @ np.stack([metric.solve(e) for e in np.eye(len(H))]), np.eye(len(H)), atol=1e-9)


@each_case
def test_a_repeated_row_is_a_doubled_weight(case: Case) -> None:
    objective = case.objective()
    n = objective.rows.shape[0]
    again = np.concatenate([np.arange(n), np.arange(0, n, 3)])
    count = np.bincount(again).astype(float)

    def rows_of(a: Any) -> Any:
        return None if a is None else a[again]

    def spread(weight: Any) -> Any:
        return None if weight is None else (weight / count)[again]

    repeated = replace(
        objective,
        rows=objective.rows[again],
        sample_weight=np.full(again.size, 1.0 / again.size),
        integrals=tuple(
            replace(t, targets=rows_of(t.targets), row_weight=spread(t.row_weight)) for t in objective.integrals
        ),
    )
    doubled = replace(objective, sample_weight=count / again.size)
    z, smoothing = point(objective), around_zero(objective)
    assert_same(repeated.evaluate(z, smoothing), doubled.evaluate(z, smoothing))
    v = point(objective, 1)
    np.testing.assert_allclose(
        hessian_product(repeated, z, smoothing, v), hessian_product(doubled, z, smoothing, v), atol=1e-12
    )


@each_case
def test_the_order_of_the_rows_does_not_matter(case: Case) -> None:
    objective = case.objective()
    n, r = objective.rows.shape
    order = np.random.default_rng(3).permutation(n)
    turned, z, smoothing = (
        replace(objective.picked(order), reach=np.full(n, r)),
        point(objective),
        around_zero(objective),
    )
    assert_same(turned.evaluate(z, smoothing), objective.evaluate(z, smoothing))
    for one, other in zip(turned.node_curvature(z, smoothing), objective.node_curvature(z, smoothing), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)


@each_case
def test_some_of_the_rows_have_weights_that_sum_to_one(case: Case) -> None:
    objective = case.objective()
    index = np.arange(0, objective.rows.shape[0], 2)
    some = objective.only(index)
    z = point(objective)
    values = [
        t.loss.value(t.theta, t.targets, h) for t, h in zip(objective.integrals, fields(objective, z), strict=True)
    ]
    expected = penalty(objective, z)
    for term, part, value in zip(objective.integrals, some.integrals, values, strict=True):
        weight = objective.weight_of(term)[index]
        np.testing.assert_allclose(some.weight_of(part), weight / weight.sum(), rtol=1e-14)
        expected += float((weight / weight.sum()) @ value[index] @ term.weights)
    assert some.evaluate(z, around_zero(some)).primal == pytest.approx(expected, rel=1e-13)


def moved(objective: Objective, like: Any) -> Objective:
    """The same objective in the library and with the dtype of an array."""

    def there(a: Any) -> Any:
        return None if a is None else as_like(a, like)

    terms = tuple(
        Integral(t.loss, *map(there, (t.theta, t.weights, t.cols, t.bias_cols, t.targets, t.row_weight)))
        for t in objective.integrals
    )
    return replace(objective, rows=there(objective.rows), sample_weight=there(objective.sample_weight), integrals=terms)


@each_case
@each("dtype", ["float64", "float32"])
def test_libraries_agree(case: Case, xp: Any, dtype: str) -> None:
    objective = replace(case.objective(), block_entries=50)
    like = xp.zeros(1, dtype=getattr(xp, dtype))
    other = moved(objective, like)
    z, v = point(objective), point(objective, 1)
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    for smoothing in (around_zero(objective), around_duals(objective)):
        centre = None if smoothing.centre is None else tuple(as_like(c, like) for c in smoothing.centre)
        theirs = replace(smoothing, centre=centre)
        found = other.evaluate(z, theirs)
        assert isinstance(found.gradient, np.ndarray)
        assert found.gradient.dtype == np.float64
        assert_same(found, objective.evaluate(z, smoothing), tolerance)
        np.testing.assert_allclose(
            hessian_product(other, z, theirs, v), hessian_product(objective, z, smoothing, v), atol=10 * tolerance
        )
        for a, b in zip(other.node_curvature(z, theirs), objective.node_curvature(z, smoothing), strict=True):
            assert isinstance(a, np.ndarray)
            assert a.dtype == np.float64
            np.testing.assert_allclose(a, b, atol=tolerance)
        for a, b in zip(other.duals(z, theirs), objective.duals(z, smoothing), strict=True):
            assert a.dtype == like.dtype
            np.testing.assert_allclose(to_host(a), b, atol=tolerance)
        if dtype == "float64":
            for a, b in zip(pairs(other, z, theirs), pairs(objective, z, smoothing), strict=True):
                np.testing.assert_array_equal(a.row, b.row)
                np.testing.assert_array_equal(a.node, b.node)
                np.testing.assert_allclose(a.weight, b.weight, rtol=1e-10)
    U, V, V_b = (np.linalg.qr(np.random.default_rng(3).normal(size=(k, k)))[0] for k in (*other.shape, other.bias_size))
    rotation = (U, V, V_b if other.bias_size else None)
    a, b = (o.rotated(*rotation).evaluate(z, around_zero(objective)) for o in (other, objective))
    assert_same(a, b, tolerance)


def test_nothing_as_large_as_rows_times_nodes_is_stored() -> None:
    n, m = 8_000, 50
    # each thread holds a block: small ones, so that the number of cores does not decide
    objective = replace(CASES[1].objective(n=n, m=m), block_entries=1_024)
    smoothing, z = around_zero(objective), point(objective)
    v = point(objective, 1)
    for work in (
        lambda: objective.evaluate(z, smoothing),
        lambda: hessian_product(objective, z, smoothing, v),
        lambda: objective.node_curvature(z, smoothing),
    ):
        work()  # what is computed once is not counted
        tracemalloc.start()
        try:
            work()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < n * m * 8 / 4


@pytest.mark.parametrize(
    ("asked", "threads"), [("1", None), ("2", 2), ("2,1", 2), ("", 3), ("many", 3), ("0", 3), ("9", 3)]
)
def test_the_environment_limits_the_threads(asked: str, threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    pool = _threads._pool.__wrapped__()
    assert (None if pool is None else pool._max_workers) == threads
