"""What a kernel is, as plain data.

``kernel.describe()`` returns a :class:`Description`. A page, an ONNX graph, predictions and the command line read it;
they test no class of a kernel. Its ``kind`` is one of a few operations:

=============  ==================  ===========================================================================
kind           values              k(x, z)
=============  ==================  ===========================================================================
"function"     those of a Profile  f(s(x, z)) for a distance, a product or another number s of the pair
"sum"                              Σ_i k_i(x, z) over the parts
"product"                          Π_i k_i(x, z)
"scaled"       scales (d,)         k₀(x∘scales, z∘scales)
"metric"       root (d, p)         k₀(xR, zR)
"ranks"        ranks               k₀(w(x), w(z)), with w_j linear through ``ranks.columns[j]``, constant beyond
"each"                             (1/d) Σ_j k_j(x_j, z_j); a single part stands for all features
"matrix"       matrix, tasks       A_ij for the tasks with the names i and j
"classes"      n_classes           k₀(θ, θ')·(K δ − 1)/(K − 1), δ from the last coordinate
"python"                           a function of Python
"precomputed"                      a Gram matrix that the caller computes
"unknown"                          only the kernel itself knows
=============  ==================  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from infinitask._base.arrays import Array, namespace

from ._distances import decay

if TYPE_CHECKING:
    from ._base import Kernel


@final
@dataclass(frozen=True, eq=False)
class Profile:
    """k(x, z) = f(u) for a number s(x, z) of each pair, with u = factor·γ·s + offset, or √(factor·γ·s) + offset.

    f(u) = Σ_i u^i/series_i · exp(−u) if there is a series, and u^power otherwise.

    Parameters
    ----------
    of : {"squared", "l1", "chi2", "product", "minimum", "equal"}
        s: ‖x − z‖², ‖x − z‖₁, Σ_k (x_k − z_k)²/(x_k + z_k), xᵀz, min(x, z), or 1 if x = z and else 0.
    gamma : float or str
        γ; the name of a rule if the kernel is not resolved.
    factor : float
    root : bool
    series : tuple of float
        Divisors of the powers of u, the first two of them 1.
    offset, power : float

    Examples
    --------
    >>> import numpy as np
    >>> Profile("squared", gamma=2.0, series=(1.0,))(np.array([0.0, 1.0])).round(3)  # of γ·s
    array([1.   , 0.368])
    """

    of: str
    gamma: Any = 1.0
    factor: float = 1.0
    root: bool = False
    series: tuple[float, ...] = ()
    offset: float = 0.0
    power: float = 1

    @property
    def is_distance(self) -> bool:
        """Whether s(x, x) = 0."""
        return self.of in ("squared", "l1", "chi2")

    @property
    def is_exponential(self) -> bool:
        """Whether k = exp(−γ·s)."""
        return self.series == (1.0,) and self.factor == 1.0 and self.offset == 0.0 and not self.root

    @property
    def is_linear(self) -> bool:
        """Whether k = xᵀz."""
        plain = self.gamma == self.factor == self.power == 1.0 and self.offset == 0.0
        return self.of == "product" and plain and not (self.root or self.series)

    @property
    def is_smooth(self) -> bool:
        """Whether f has a finite slope in s at 0."""
        return not self.root or len(self.series) > 1

    def __call__(self, s: Array) -> Array:
        """f for an array of γ·s(x, z), which is overwritten."""
        return self.at(s, lambda u: namespace(u).sqrt(u), decay)

    def at(self, s: Any, sqrt: Callable[[Any], Any], decay: Callable[[Any], Any]) -> Any:
        """The same for anything that is added and multiplied as arrays are; ``decay`` is exp(−u)."""
        u = self.argument(s, sqrt)
        if not self.series:
            return u if self.power == 1 else u**self.power
        if len(self.series) == 1:
            return decay(u)
        return self.polynomial(u) * decay(u)  # last, because it may overwrite u

    def argument(self, s: Any, sqrt: Callable[[Any], Any]) -> Any:
        """u, from γ·s."""
        u = s if self.factor == 1.0 else s * self.factor
        u = sqrt(u) if self.root else u
        return u if self.offset == 0.0 else u + self.offset

    def polynomial(self, u: Any) -> Any:
        """Σ_i u^i/series_i, of more than one term."""
        total, power = 1.0 + u, u
        for divisor in self.series[2:]:
            power = power * u
            total = total + power / divisor
        return total

    def slope(self, u: Any, divided: bool = False) -> Any:
        """The polynomial of f′(u) = slope(u)·exp(−u), of a series; ``divided`` by u, for a series of several terms."""
        coefficients = [1.0 / divisor for divisor in self.series] + [0.0]
        terms = [(i + 1) * coefficients[i + 1] - c for i, c in enumerate(coefficients[:-1])]
        total = u * 0.0 + terms[-1]
        for term in terms[-2 : 0 if divided else None : -1]:
            total = total * u + term
        return total

    def derivative(self, s: Array, rate: float) -> Array:
        """``rate`` times the derivative of f in γ·s, at an array of γ·s, which is overwritten; 0 at a kink."""
        xp = namespace(s)
        u = self.argument(s, xp.sqrt)
        if not self.series:
            return rate * self.factor * self.power * u ** (self.power - 1)
        if not self.root:
            return (rate * self.factor) * (self.slope(u) * decay(u))
        if len(self.series) > 1:
            polynomial = self.slope(u, divided=True)
        else:
            away = xp.astype(u > 0, u.dtype)
            polynomial = -away / (u + (1.0 - away))
        return (0.5 * rate * self.factor) * (polynomial * decay(u))


@final
@dataclass(frozen=True, eq=False)
class Description:
    """What a kernel is: an operation, its numbers, and the kernels inside. ``str`` writes it as ``repr`` does.

    Parameters
    ----------
    name : str
        Of the class.
    kind : str
        The operation, see the table of the module.
    values : mapping
        Numbers, arrays and texts that the operation needs.
    parts : tuple of Description
    kernel : Kernel
        The kernel itself, which Python can call; no other reader needs it.

    Examples
    --------
    >>> from infinitask.kernels import RBF, Linear, Scaled
    >>> found = (Scaled(RBF(gamma=0.5), (1.0, 2.0)) + Linear()).describe()
    >>> found.kind, found.outline
    ('sum', 'Sum(Scaled(RBF), Linear)')
    >>> found.parts[0].parts[0].values["gamma"]
    0.5
    """

    name: str
    kind: str
    values: Mapping[str, Any]
    parts: tuple[Description, ...]
    kernel: Kernel = field(repr=False)

    def __str__(self) -> str:
        return repr(self.kernel)

    @property
    def outline(self) -> str:
        """The names of the kernels without their numbers, such as Scaled(RBF)."""
        names = [part.outline for part in self.parts]
        if self.kind == "each":
            names = list(dict.fromkeys(names))
        return self.name + (f"({', '.join(names)})" if names else "")

    @property
    def profile(self) -> Profile | None:
        """f and s, of a "function"."""
        return Profile(**self.values) if self.kind == "function" else None
