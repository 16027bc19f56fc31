"""The tuned numbers of this package.

They were chosen by the loss on test rows, most of them on the twenty data sets of the paper's Table 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray

# ------------------------------------------------------------------------------------------------ rows and folds
FOLDS = 5
"""Folds of a comparison."""

ROWS_TO_HOLD_OUT, MAX_REPEATS = 150, 4
"""Folds are repeated until this number of rows has been held out in all, at most MAX_REPEATS times."""

FEW_ROWS = 600
"""Up to this number of rows kernels that learn from targets are made again for every fold of the calibration, and all
kernels are compared with all rows. A metric is learnt from at most this number of rows."""

MAX_ROWS = 2_000
"""Kernels are compared by at most this number of rows; λ is then refined with all."""

MANY_ROWS, GAP_OF_MANY = 5_000, 1e-3
"""With more rows, the duality gap of the final fit is GAP_OF_MANY. With 38 000 rows a gap of 1e-4 has the same loss on
test rows to a thousandth, and takes up to ten times as long."""

OUTLIER, FARTHEST_TARGET = 5.0, 50.0
"""Values farther than OUTLIER spreads from the centre are compared as if they were at this distance, in the ranking of
kernels and in the box of level sets; targets of fits that are compared, those farther than FARTHEST_TARGET."""

# ------------------------------------------------------------------------------------------- candidate kernels
MAX_RANKING_ROWS = 500
"""The ranking of kernels uses at most this number of rows."""

LEARNING_ROWS, MAX_SCALED_FEATURES = 200, 60
"""A scale for each feature is estimated by likelihood from at most LEARNING_ROWS rows, for at most this number of
features. From LEARNING_ROWS rows on, kernels that learn from targets do so from rows that the ranking does not use;
below, in folds."""

MIN_ROWS_TO_LEARN, ROWS_PER_FEATURE_TO_LEARN = 40, 10
"""Metrics are learnt from at least this number of rows, and full ones from this number of rows for each feature."""

RIDGES: HostArray = np.logspace(-7.0, 1.0, 25)
"""λ/n of the ranking."""

KERNELS, ROWS_PER_KERNEL = 4, 5
"""The first kernels of the ranking compete by themselves and in sums: this number of them, if there are ROWS_PER_KERNEL
rows for each."""

FINALISTS = 3
"""Kernels that race with all rows after a heat; their best was as good as the best of all."""

# ---------------------------------------------------------------------------------------------- fits to compare
LAMBDAS: HostArray = np.logspace(1.5, -8.0, 20)
"""λ for targets whose typical distance from their centre is 1; the first one all but ignores the features."""

MAX_FEATURES, RANKS = 1_000, (750, 1_500)
"""The most features of a fit that is only compared, and the numbers of landmarks that are tried with many rows."""


class Effort(NamedTuple):
    """How exactly fits are solved that are not kept."""

    gap: float
    max_iter: int
    floor: float
    """If an objective is smaller, its gap is relative to this; targets are of size one."""


QUICK, QUICK_NODES = Effort(gap=1e-2, max_iter=200, floor=1e-2), 9
"""A fit that is only compared, and its nodes."""

CALIBRATING = Effort(gap=5e-3, max_iter=300, floor=1e-6)
"""A fit whose held-out predictions calibrate the model; it has all nodes."""

# ---------------------------------------------------------------------------------------------- rules for losses
SLIGHTLY_WORSE, CLEARLY_WORSE, MUCH_WORSE = 1.01, 1.03, 1.1
"""Factors on the best loss."""

TOLERATED_ERRORS = 0.5
"""Standard errors of the difference by which a larger λ may be worse than the best. A whole one loses half a percent
on test rows; to ignore the features, a whole one is asked for."""

# ------------------------------------------------------------------------------------------------- level sets
FACTORS = (0.5, 1.0, 2.0, 5.0, 10.0, 25.0, 60.0)
"""γ of the candidates, as multiples of the median rule; the one in the middle is that of the defaults."""

MAX_SET_ROWS = 1_000
"""The most rows by which kernels of level sets are compared."""

MAX_BOX_FEATURES = 3
"""Up to this number of features volumes are those of a box; beyond, hardly any point of a box is near the data."""

EDGE, MARGIN = 0.01, 0.1
"""The box reaches from this quantile of each feature to its opposite, and is larger by MARGIN on each side."""
