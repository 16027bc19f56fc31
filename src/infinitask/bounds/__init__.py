r"""Numerical generalisation bounds for quantile regression and cost-sensitive classification.

With probability at least 1 − δ over n independent samples,

.. math::

    R(h) \le \hat R(h) + 2\beta + (4 n \beta + \xi) \sqrt{\log(1/\delta) / (2n)} + V \, D_m ,

where R is the risk integrated over Θ and R̂ its mean over samples and nodes, β the uniform stability of the algorithm
and ξ a bound on its loss (Bousquet and Elisseeff, 2002), V a bound on the variation of θ ↦ E ℓ_θ, and D_m the star
discrepancy of the nodes (Koksma's inequality). With κ² ≥ k_X k_Θ, κ'² ≥ k_X ∂₁∂₂k_Θ, B ≥ |y| (1 for labels), ℒ the mean
over Θ of the largest slope of the loss and L₀ ≥ R̂(0),

.. math::

    \beta = \frac{ℒκ(ℒκ + \lambda_{nc} κ')}{\lambda n}, \quad
    \rho = \min\Bigl(\sqrt{2 L_0/\lambda},\; \frac{ℒκ + \lambda_{nc} κ'}{\lambda}\Bigr) \ge \|h\|, \quad
    \xi = ℒ (B + κρ), \quad V = a (B + κρ) + c\, κ'ρ .

For levels uniform on (0, 1): ℒ = 3/4, L₀ = B/2, a = 1, c = 3/4; for costs uniform on (−1, 1): ℒ = L₀ = 1/2, a = c = 1.

Size of the terms: with κ = B = 1, no non-crossing penalty and δ = 0.05, the statistical terms of quantile regression
are about (2.8/λ + 0.9/√λ + 0.9)/√n. A model that always predicts 0 has a risk of at most B/2. At λ = 1 the terms are
0.45 for n = 100 and 0.04 for n = 10 000; at λ = 0.1 they are 3.3 and 0.32; at λ = 0.001, where models are useful, the
bound is vacuous below 30 million samples. The bound shows how the error scales, but rarely how large it is: see
``vacuous`` of a bound.

Notes
-----
This module differs from the paper (Brault et al., 2019, appendix on stability); ``form="printed"`` returns the numbers
as printed.

* The theorem of Bousquet and Elisseeff has 4nβ where the paper has 4β. As β is of order 1/(λn), the deviation is of
  order 1/(λ√n), not 1/√(λn), and λ ≫ n^(−1/2) drives it to zero. Later theorems, from Feldman and Vondrák (2019) on,
  restore the printed rate up to logarithms, with constants that are useful for very large n only. The paper also has
  log(1/δ)/n instead of log(1/δ)/(2n), which is conservative.
* The λ of the paper multiplies ‖h‖² in the appendix and is halved in the main text. Here it is (λ/2)‖h‖², and
  ``form="printed"`` puts λ/2 into the formulas of the appendix.
* The paper bounds the variation of θ ↦ h(x)(θ) by a sum of √(θ_(i+1) − θ_i) over a subdivision, which grows without
  bound as the subdivision is refined. With a bounded ∂₁∂₂k_Θ (rather than ∂₁k_Θ) the function is Lipschitz, and V is as
  above.
* log(m)/m is 0 at m = 1, but no rule is exact there. The discrepancy here is that of the nodes. For a number of nodes
  it is log(m)/(3m log 2) + 1/m, which is valid for the first m points of van der Corput's sequence (Béjian and Faure,
  1977); it was observed to be valid for every rule of :mod:`infinitask.measures` except Monte Carlo.
* The pinball loss at θ has slopes of at most max(θ, 1 − θ), where the paper has 2; both are proved.

Several coordinates of θ: the paper remarks that the discrepancy of Sobol's sequence is then log(m)^s/m, s = dim Θ. D_m
is computed exactly for the nodes of any rule, and ``propose_nodes(n, dim=s)`` uses that of Sobol's. Hlawka's inequality
|∫f − Σ_j w_j f(θ_j)| ≤ V·D_m has the variation of Hardy and Krause, V = Σ_S ∫ |∂^S f(θ_S, 1)| dθ_S over all non-empty
sets S of coordinates, with the others at their upper ends. It is of another kind than the V above, for which a slope is
enough:

* It needs all mixed derivatives of first order. The pinball and hinge losses of one sample have a kink where
  y = h(x)(θ). Along a surface oblique to all axes, it adds a finite mass in two dimensions and makes V infinite from
  three on: for f = max(0, θ_1 + θ_2 + θ_3 − 3/2) the sum over a grid of k³ cells grows like k. The mean over y smooths
  the kink if y has a smooth density, which a bound for all distributions cannot use. So the norm of h bounds V in one
  dimension only.
* What a slope does give is slower: with equal weights, |∫f − (1/m) Σ_j f(θ_j)| ≤ 4L·D_m^(1/s) if f has the Lipschitz
  constant L in the maximum norm (Proinov, 1988). This is what :func:`bound_of` uses, for uniform measures.
* A grid of m^(1/s) nodes for each axis, such as that of Gauss and Legendre, has a D_m of order m^(−1/s). Its error is
  nevertheless small for smooth f; D_m bounds the error of the worst f only.

Beyond the paper: a bias b with weight λ_b is a further part of the kernel, and κ² increases by (λ/λ_b) sup k_b and κ'²
similarly. The non-crossing penalty is, like the loss, a convex Lipschitz function of (x_i, h), 0 at h = 0, so the
algorithm stays stable with the β above. Hard constraints at the training rows are not covered.
"""

from infinitask.bounds._fitted import bound_of
from infinitask.bounds._formula import cost_sensitive_bound as cost_sensitive_bound
from infinitask.bounds._formula import propose_nodes
from infinitask.bounds._formula import quantile_bound as quantile_bound

__all__ = ["bound_of", "propose_nodes"]
