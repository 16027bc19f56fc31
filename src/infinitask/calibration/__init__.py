"""Post-fit calibration of a model on held-out rows.

:class:`HeldOut` is the engine for held-out predictions, see :mod:`infinitask.calibration.held_out`. It calibrates the
results of models: the shift of thresholds and decisions (``_thresholds``), probabilities of many classes
(``_class_probabilities``), a map of levels (``_levels``), conformal intervals (``_conformal``),
and monotone curves over θ (``_rearrangement``).
"""

# saved models refer to these classes by this module
from ._class_probabilities import ClassScale as ClassScale
from ._conformal import ConformalCalibration as ConformalCalibration
from ._conformal import CrossCalibration as CrossCalibration
from ._levels import Levels as Levels
from ._levels import Rearrangement as Rearrangement
from ._thresholds import Shift as Shift
from ._winning_fractions import ShareScale as ShareScale
from .held_out import HeldOut, HeldOutFits

__all__ = ["HeldOut", "HeldOutFits"]
