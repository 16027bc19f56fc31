"""Costs of many classes as a measure."""

from __future__ import annotations

import numpy as np
import pytest

from infinitask.measures import ClassCosts, GaussLegendre, Halton, MonteCarlo, Sobol


@pytest.mark.parametrize("rule", [Sobol(), Sobol(scramble=False), Halton(), MonteCarlo()], ids=repr)
@pytest.mark.parametrize("concentration", [1.0, 3.0])
def test_nodes_are_costs(rule: object, concentration: float) -> None:
    measure = ClassCosts(4, concentration)
    found = rule(measure, 33, 0)  # type: ignore[operator]
    assert found.nodes.shape == (33, 4)
    assert np.all(found.nodes > 0.0)
    assert np.all(measure.contains(found.nodes))
    np.testing.assert_allclose(found.nodes.sum(axis=1), 1.0)
    assert not np.any(measure.contains(found.nodes + 0.1))


def test_a_class_wins_for_a_fraction_of_costs_that_is_its_probability() -> None:
    costs = Sobol()(ClassCosts(5), 2**14, 0).nodes
    for p in np.random.default_rng(0).dirichlet(np.ones(5), size=5):
        wins = np.bincount(np.argmax(costs * p, axis=1), minlength=5) / len(costs)
        np.testing.assert_allclose(wins, p, atol=0.005)


def test_two_classes_have_uniform_costs() -> None:
    costs = np.sort(Sobol()(ClassCosts(2), 4096, 0).nodes[:, 0])
    np.testing.assert_allclose(costs, (np.arange(4096) + 0.5) / 4096, atol=0.01)


def test_a_concentration_brings_costs_together() -> None:
    loose, tight = (Sobol()(ClassCosts(3, a), 512, 0).nodes.std() for a in (1.0, 20.0))
    assert tight < 0.5 * loose


def test_grids_and_wrong_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="no product"):
        GaussLegendre()(ClassCosts(3), 8)
    with pytest.raises(ValueError, match="concentration"):
        Sobol()(ClassCosts(3, 0.0), 8, 0)
    with pytest.raises(ValueError, match="n_classes=1"):
        Sobol()(ClassCosts(1), 8, 0)
