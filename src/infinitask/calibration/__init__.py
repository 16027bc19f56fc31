"""Post-fit calibration: what held-out rows say about a fit.

* :class:`~infinitask.calibration.held_out.HeldOut`: the engine for held-out predictions.
* :class:`Shift`: thresholds of level sets, and decisions between two classes.
* :class:`ShareScale`: probabilities of many classes.
* :class:`Levels`: every quantile with its coverage on held-out rows, by a map of levels.
* :class:`ConformalCalibration`: intervals with a guaranteed coverage, from rows kept aside; :class:`CrossCalibration`:
  from rows that several fits hold out.
* :class:`Rearrangement`: curves over θ, sorted.
"""

from ._class_probabilities import ShareScale
from ._conformal import ConformalCalibration as ConformalCalibration
from ._cross_conformal import CrossCalibration as CrossCalibration
from ._levels import Levels as Levels
from ._rearrangement import Rearrangement as Rearrangement
from ._thresholds import Shift

__all__ = ["ShareScale", "Shift"]
