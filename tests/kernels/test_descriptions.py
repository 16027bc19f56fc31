"""A description is the kernel: a reader that knows the operations alone computes the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteQuantileRegressor, kernels
from infinitask.cli._steps import described
from infinitask.datasets import make_sine
from infinitask.integrations.onnx import to_onnx
from infinitask.kernels import (
    RBF,
    Additive,
    CallableKernel,
    Chi2,
    ClassTask,
    ConstantTask,
    Diagonal,
    Gaussian,
    InputKernel,
    Laplacian,
    LearntMetric,
    Linear,
    Matern,
    MaternTask,
    Metric,
    PiecewiseLinear,
    Polynomial,
    PolynomialTask,
    Precomputed,
    Scaled,
    TaskKernel,
    TaskMatrix,
    Warped,
    input_kernel,
    task_kernel,
)
from infinitask.kernels._base import Description, Profile
from infinitask.report import explore
from tests.support.names import case_name

RNG = np.random.default_rng(0)
X, Z = RNG.gamma(1.0, size=(9, 3)), RNG.gamma(1.0, size=(7, 3))
X[0] = Z[0]
S, T = RNG.random((9, 1)), RNG.random((7, 1))
S[0] = T[0]

INPUT: list[InputKernel] = [
    RBF(),
    Laplacian(),
    *(Matern(nu=nu) for nu in (0.5, 1.5, 2.5)),
    Chi2(),
    Linear(),
    Polynomial(degree=2, gamma="median", coef0=0.5),
    RBF() + Linear() * Matern(),
    Scaled(Laplacian(), (1.0, 0.0, 3.0)),
    Metric(RBF(), RNG.normal(size=(3, 2))),
    Additive(RBF()),
    Additive(RBF(gamma=1.0) + Linear()),
    Warped(Scaled(Additive(Laplacian()) + Polynomial(), (1.0, 0.5, 2.0))),
]
TASK: list[tuple[TaskKernel, int]] = [
    (Gaussian(), 1),
    (Gaussian(), 2),
    (MaternTask(nu=1.5), 1),
    (MaternTask(nu=2.5), 3),
    (PolynomialTask(degree=2, coef0=0.5), 2),
    (ConstantTask(), 1),
    (PiecewiseLinear(offset=0.3), 1),
    (Diagonal(), 1),
]


def statistic(of: str, A: Any, B: Any) -> Any:
    a, b = A[:, None, :], B[None, :, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "squared": np.sum((a - b) ** 2, axis=2),
            "l1": np.sum(abs(a - b), axis=2),
            "chi2": np.sum(np.nan_to_num((a - b) ** 2 / (a + b)), axis=2),
            "product": A @ B.T,
            "minimum": np.min(np.minimum(a, b), axis=2),
            "equal": np.all(a == b, axis=2).astype(float),
        }[of]


def evaluated(node: Description, A: Any, B: Any) -> Any:
    """k(a, b) for all pairs of rows, by the table of ``kernels/_description.py``."""
    values, parts = node.values, node.parts
    if node.kind == "function":
        u = values["factor"] * values["gamma"] * statistic(values["of"], A, B)
        u = (np.sqrt(u) if values["root"] else u) + values["offset"]
        terms = [u**i / divisor for i, divisor in enumerate(values["series"])]
        return sum(terms) * np.exp(-u) if terms else u ** values["power"]
    if node.kind in ("sum", "product"):
        return {"sum": np.sum, "product": np.prod}[node.kind]([evaluated(part, A, B) for part in parts], axis=0)
    if node.kind == "each":
        columns = [[j] for j in range(A.shape[1])]
        return np.mean([evaluated(parts[j % len(parts)], A[:, [j]], B[:, [j]]) for (j,) in columns], axis=0)
    if node.kind == "matrix":
        places = [np.argmin(abs(values["tasks"][:, None] - tasks[:, 0]), axis=0) for tasks in (A, B)]
        return values["matrix"][np.ix_(*places)]
    if node.kind == "classes":
        K, same = values["n_classes"], A[:, -1:] == B[:, -1:].T
        return evaluated(parts[0], A[:, :-1], B[:, :-1]) * (K * same - 1.0) / (K - 1.0)
    if node.kind == "scaled":
        return evaluated(parts[0], A * values["scales"], B * values["scales"])
    if node.kind == "metric":
        return evaluated(parts[0], A @ values["root"], B @ values["root"])
    assert node.kind == "ranks"
    known = values["ranks"].columns
    scores = [np.column_stack([np.interp(M[:, j], *pair) for j, pair in enumerate(known)]) for M in (A, B)]
    return evaluated(parts[0], *scores)


@pytest.mark.parametrize("kernel", INPUT, ids=case_name)
def test_the_description_of_an_input_kernel_determines_it(kernel: InputKernel) -> None:
    kernel = kernel.resolve(X)
    np.testing.assert_allclose(evaluated(kernel.describe(), X, Z), kernel(X, Z), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.diagonal(evaluated(kernel.describe(), X, X)), kernel.diag(X), rtol=1e-12)


@pytest.mark.parametrize(("kernel", "d"), TASK, ids=case_name)
def test_the_description_of_a_task_kernel_determines_it(kernel: TaskKernel, d: int) -> None:
    s, t = S * np.linspace(1.0, 5.0, d), T * np.linspace(1.0, 5.0, d)
    kernel = kernel.resolve(s)
    np.testing.assert_allclose(evaluated(kernel.describe(), s, t), kernel(s, t), rtol=1e-12)


def test_the_descriptions_of_finitely_many_tasks_determine_them() -> None:
    matrix = TaskMatrix([[1.0, 0.5], [0.5, 2.0]], tasks=[0.1, 0.9])
    some = np.array([[0.9], [0.1], [0.9]])
    np.testing.assert_array_equal(evaluated(matrix.describe(), some, some[:2]), matrix(some, some[:2]))
    classes = ClassTask(Gaussian(gamma=2.0), 3)
    tasks = np.array([[theta, k] for theta in (0.2, 0.7) for k in range(3)])
    np.testing.assert_allclose(evaluated(classes.describe(), tasks, tasks), classes(tasks, tasks), rtol=1e-12)


def test_every_public_kernel_is_described() -> None:
    seen = {type(kernel) for kernel in INPUT} | {type(kernel) for kernel, _ in TASK}
    seen |= {part for kernel in INPUT for part in types_inside(kernel.describe())}
    rest = {getattr(kernels, name) for name in kernels.__all__} - seen
    assert rest <= {InputKernel, TaskKernel, TaskMatrix, LearntMetric}  # the last becomes a Scaled or a Metric


def types_inside(node: Description) -> list[Any]:
    return [type(node.kernel), *(found for part in node.parts for found in types_inside(part))]


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_slope_of_a_profile_is_that_of_its_function(nu: float) -> None:
    profile, u = Matern(nu=nu, gamma=1.0).profile(), np.linspace(0.1, 3.0, 20)

    def f(at: Any) -> Any:
        return (profile.polynomial(at) if nu > 0.5 else 1.0) * np.exp(-at)

    np.testing.assert_allclose(profile.slope(u) * np.exp(-u), (f(u + 1e-6) - f(u - 1e-6)) / 2e-6, rtol=1e-7)


def test_names_in_words() -> None:
    kernel = Scaled(RBF(gamma=0.5), (1.0, 2.0)) + Additive(Linear(), (Linear(), Linear()))
    assert kernel.describe().outline == "Sum(Scaled(RBF), Additive(Linear))"
    assert str(kernel.describe()) == repr(kernel)
    for name, words in (("matern52", "Matern(nu=2.5)"), ("polynomial", "Polynomial(gamma='median')")):
        assert repr(input_kernel(name)) == words
    assert repr(task_kernel("matern52", gamma=2.0)) == "MaternTask(gamma=2.0, nu=2.5)"
    # the text of a kernel that is wrong is needed for the sentence that says so
    assert repr(Matern(nu=7)) == "Matern(nu=7)"
    assert repr(TaskMatrix(np.eye(2))) == "TaskMatrix(matrix=<2 × 2>)"


@pytest.mark.parametrize(
    ("kernel", "kind"), [(CallableKernel(lambda A, B: A @ B.T), "python"), (Precomputed(), "precomputed")]
)
def test_what_has_no_formula_says_what_it_is(kernel: InputKernel, kind: str) -> None:
    assert kernel.describe().kind == kind
    assert kernel.describe().parts == ()


# --------------------------------------------------------------------------------------------- a kernel is one class
class RationalQuadratic(InputKernel):
    """(1 + γ‖x − z‖²)^(−2)."""

    names = {"rational-quadratic": {}}  # noqa: RUF012

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def profile(self) -> Profile:
        return Profile("squared", self.gamma, offset=1.0, power=-2)


class Shifted(InputKernel):
    """xᵀz + 1, without a profile."""

    def __call__(self, X: Any, Z: Any) -> Any:
        return X @ Z.T + 1.0

    def diag(self, X: Any) -> Any:
        return np.sum(X * X, axis=1) + 1.0


class Wider(RBF):
    """Something else than the class that it derives from."""

    def __call__(self, X: Any, Z: Any) -> Any:
        return super().__call__(X, Z) ** 0.5


def fitted(kernel: Any) -> tuple[Any, Any, Any]:
    x, y = make_sine(40, random_state=0)
    return InfiniteQuantileRegressor(kernel=kernel, n_nodes=6, alpha=1e-2, gamma=2.0).fit(x, y), x, y


@pytest.mark.parametrize("kernel", [RationalQuadratic(gamma=3.0), "rational-quadratic"], ids=["object", "name"])
def test_a_new_class_with_a_profile_is_enough(kernel: Any) -> None:
    model, x, y = fitted(kernel)
    plain, _, _ = fitted(lambda A, B: (1.0 + model.kernel_.gamma * (A - B.T) ** 2) ** -2)
    np.testing.assert_allclose(model.predict(x, [0.2, 0.8]), plain.predict(x, [0.2, 0.8]), atol=1e-6)
    node = model.kernel_.describe()
    np.testing.assert_allclose(evaluated(node, X, Z), model.kernel_(X, Z), rtol=1e-12)
    assert node.outline == described(model)["kernel_name"] == "RationalQuadratic"
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"X": x, "theta": np.array([0.2, 0.8])})
    np.testing.assert_allclose(found, model.predict(x, [0.2, 0.8]), atol=1e-6)
    assert explore(model, x, y).payload["model"]["field"]["left"]["kernel"]["power"] == -2


@pytest.mark.parametrize("kernel", [Shifted(), Wider(gamma=2.0)], ids=case_name)
def test_a_class_without_a_profile_fits_and_says_what_it_lacks(kernel: InputKernel) -> None:
    model, x, y = fitted(kernel)
    name = type(kernel).__name__
    assert np.all(np.isfinite(model.predict(x, [0.2, 0.8])))
    assert model.kernel_.describe().kind == "unknown"
    assert repr(model.kernel_) == repr(kernel)
    assert described(model)["kernel_name"] == name
    pytest.importorskip("onnx")
    with pytest.raises(TypeError, match=f"uses the kernel {name}, which has no ONNX graph"):
        to_onnx(model)
    with pytest.raises(ValueError, match=f"the kernel {name}, which is not one of infinitask.kernels"):
        explore(model, x, y)


def test_a_class_that_computes_nothing_says_what_it_needs() -> None:
    class Empty(InputKernel):
        pass

    with pytest.raises(TypeError, match="Empty computes nothing yet; implement its profile"):
        Empty()(X, Z)
