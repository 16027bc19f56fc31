"""Tasks: one file for each, with everything specific to it.

A :class:`Task` defines the problem (loss, measure, penalty, order in θ), the defaults, the post-fit calibration, the
warnings and the mapping from h(x)(θ) to a prediction. No module outside this package, the losses and the estimators
names a loss.

======================  ============================================================
`QuantileTask`          conditional quantiles and M-quantiles
`CensoredQuantileTask`  conditional quantiles of right-censored targets
`ExpectileTask`         conditional expectiles
`CostTask`              decisions between two classes, for every cost of their errors
`AgainstRestTask`       decisions between many classes, each against all others
`LevelSetTask`          density level sets, for every fraction outside
`EpsilonTask`           support vector regression, for every width of the tube
`RidgePathTask`         ridge regression, for every weight of the ridge
`CurveTask`             curves as targets
`Task`                  any other loss
======================  ============================================================
"""

from .base import Defaults, Learnt, Order, Task
from .censored import CensoredQuantileTask as CensoredQuantileTask
from .censored import Censoring, KaplanMeier
from .classes import AgainstRestTask as AgainstRestTask
from .classes import ClassesTask as ClassesTask
from .cost import CostTask as CostTask
from .curves import CurveTask as CurveTask
from .custom import task_for
from .epsilon import EpsilonTask as EpsilonTask
from .expectile import ExpectileTask as ExpectileTask
from .level_set import LevelSetTask as LevelSetTask
from .quantile import QuantileTask as QuantileTask
from .ridge_path import RidgePathTask as RidgePathTask

__all__ = ["Censoring", "Defaults", "KaplanMeier", "Learnt", "Order", "Task", "task_for"]
