"""The tuned constants of this package.

They were chosen by the loss on test rows, mostly on the twenty data sets of Table 1 of the paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray

# ------------------------------------------------------------------------------------------------ rows and folds
FOLDS = 5
"""The number of folds of a comparison."""

ROWS_TO_HOLD_OUT, MAX_REPEATS = 150, 4
"""Folds are repeated until this number of rows has been held out in total, at most MAX_REPEATS times."""

FEW_ROWS = 600
"""Up to this number of rows, kernels that learn from targets are created again for every fold of the calibration, and
all kernels are compared on all rows. A metric is learnt from at most this number of rows."""

MAX_ROWS = 2_000
"""Kernels are compared on at most this number of rows; λ is then refined on all."""

MANY_ROWS, GAP_OF_MANY = 5_000, 1e-3
"""With more rows, the duality gap of the final fit is GAP_OF_MANY. With 38 000 rows a gap of 1e-4 changes the loss on
test rows by less than a thousandth, and takes up to ten times as long."""

OUTLIER, FARTHEST_TARGET = 5.0, 50.0
"""Values further than OUTLIER spreads from the centre are clipped to this distance in the ranking of kernels and in the
box of level sets. Targets of fits that are compared are clipped to FARTHEST_TARGET spreads."""

# ------------------------------------------------------------------------------------------- candidate kernels
MAX_RANKING_ROWS = 500
"""The ranking of kernels uses at most this number of rows."""

LEARNING_ROWS = 200
"""A scale for each feature is estimated by likelihood from at most LEARNING_ROWS rows. From LEARNING_ROWS rows on,
kernels that learn from targets use rows that the ranking does not use; below it, they are created for each fold."""

MIN_ROWS_TO_LEARN, ROWS_PER_FEATURE_TO_LEARN = 40, 10
"""Metrics are learnt from at least this number of rows, and full ones from this number of rows per feature."""

RIDGES: HostArray = np.logspace(-7.0, 1.0, 25)
"""λ/n in the ranking."""

KERNELS, ROWS_PER_KERNEL = 4, 5
"""The number of first kernels of the ranking that compete by themselves and in sums, if there are ROWS_PER_KERNEL rows
for each."""

FINALISTS = 2
"""The number of kernels that race on all rows after a heat; with three, the mean loss of 21 tables was the same."""

# ---------------------------------------------------------------------------------------------- fits to compare
LAMBDAS: HostArray = np.logspace(1.5, -8.0, 20)
"""λ for targets whose typical distance from their centre is 1; the first one nearly ignores the features."""

MAX_FEATURES, RANKS = 500, (375, 750, 1_500)
"""The maximum number of features of a fit that is only compared, and the numbers of landmarks to try with many rows.
With 1 000 features instead of 500, seven of eight tables have the same choice, and a fit takes up to a sixth longer.
With 50 000 rows the largest number of landmarks takes three times as long as the others together, and is not tried if
the second does not help. The first is also that of a fit after an interrupt, and the smallest one if there is little
time."""


HARDLY_BEGUN = 0.1
"""A rough fit replaces a final fit that time ends with a larger gap: its predictions may be worse than a constant."""


class Effort(NamedTuple):
    """The accuracy of fits that are not kept."""

    gap: float
    max_iter: int
    floor: float
    """The gap is relative to this value if the objective is smaller; targets have size one."""


QUICK, QUICK_NODES = Effort(gap=1e-2, max_iter=200, floor=1e-2), 9
"""The settings of a fit that is only compared, and its number of nodes."""

CALIBRATING = Effort(gap=5e-3, max_iter=300, floor=1e-6)
"""The settings of a fit whose held-out predictions calibrate the model; it has all nodes."""

# ---------------------------------------------------------------------------------------------- rules for losses
SLIGHTLY_WORSE, CLEARLY_WORSE = 1.01, 1.03
"""Factors on the best loss."""

TOLERATED_ERRORS = 0.5
"""A larger λ may be worse than the best by this number of standard errors of the difference. With 1, the loss on test
rows is half a percent larger. The rule "one-se" ignores the features unless the best λ
is better by 1."""

# ------------------------------------------------------------------------------------------------- level sets
FACTORS = (0.5, 1.0, 2.0, 5.0, 10.0, 25.0, 60.0)
"""γ of the candidates, as multiples of the median rule; the middle one is the default."""

MAX_SET_ROWS = 1_000
"""The maximum number of rows on which kernels of level sets are compared."""

MAX_BOX_FEATURES = 3
"""Volumes are those of a box up to this number of features; with more, hardly any point of a box is near the data."""

EDGE, MARGIN = 0.01, 0.1
"""The box extends from this quantile of each feature to the opposite one, plus MARGIN on each side."""
