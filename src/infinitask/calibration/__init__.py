"""Post-fit calibration: what held-out rows say about a fit.

:class:`HeldOut` is the engine for held-out predictions, see :mod:`infinitask.calibration.held_out`. What it calibrates
are results that models return: a shift of thresholds and decisions (``_thresholds``), probabilities of many classes
(``_class_probabilities``), a map of levels (``_levels``), conformal intervals (``_conformal``),
and curves over θ in order (``_rearrangement``).
"""

# saved models name these classes here
from ._class_probabilities import ShareScale as ShareScale
from ._conformal import ConformalCalibration as ConformalCalibration
from ._conformal import CrossCalibration as CrossCalibration
from ._levels import Levels as Levels
from ._rearrangement import Rearrangement as Rearrangement
from ._thresholds import Shift as Shift
from .held_out import HeldOut, HeldOutFits

__all__ = ["HeldOut", "HeldOutFits"]
