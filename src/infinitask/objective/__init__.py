r"""The objective: a sum of integrals over the data and of quadratics in the unknowns.

With rows Φ (n, r), an :class:`Integral` with columns Ψ (m, s), and unknowns z = (C, c), C (r, s) and c (s_b),

.. math::

    P(z) = \sum_{\text{integrals}} \sum_{ij} \omega_i w_j \, \ell_{\theta_j}(y_i, H_{ij})
           + \langle v, c \rangle + \tfrac{\lambda}{2} \|C\|_F^2 + \tfrac{\lambda_b}{2} \|c\|^2 ,
    \qquad H = \Phi C \Psi^\top + 1 (\Psi_b c)^\top .

It is a sum over blocks of rows: a block fits in the cache of a processor (or is a batch on a device), and no array of
size n × m is stored for the whole data set. One pass gives the value, the gradient and a dual point. The slopes of the
smoothed losses are feasible dual points u. With g the gradient of the smoothed objective,

.. math::

    z_u = z - \Lambda^{-1} g, \qquad
    D(u) = \sum \omega w \, (-\ell^*(-u)) - \tfrac{1}{2} \|z_u\|_\Lambda^2 \le \min P ,

where Λ is λ on C and λ_b on c. The dual term needs no extra work: Σ ω w u h = ⟨z, −∇data⟩.

If the bias is free, λ_b = 0, a dual point must balance; :class:`Balance` ensures this.
"""

from ._balance import Balance as Balance
from ._balance import DualRows as DualRows
from ._balance import dual_rows as dual_rows
from ._balance import origin_rows as origin_rows
from ._objective import Objective as Objective
from ._parted import PartedRows as PartedRows
from ._parted import Parts as Parts
from ._parted import Sums as Sums
from ._parted import Visit as Visit
from ._parted import added as added
from ._terms import BLOCK_ENTRIES as BLOCK_ENTRIES
from ._terms import Evaluation as Evaluation
from ._terms import Integral as Integral
from ._terms import Smoothing as Smoothing
from ._terms import product as product

__all__: list[str] = []
