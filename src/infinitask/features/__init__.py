"""Feature maps: φ of the input kernel, ψ of the task kernel.

A kernel enters the problem only through features with φ(x)ᵀφ(z) = k(x, z), exactly or nearly. A *recipe*
(:class:`PivotedCholesky`, :class:`Nystroem`, :class:`RandomFourier`, :class:`Auto`) selects the features: it builds a
*map* for new rows and its values on the training rows. There are few tasks, and their features are always exact.

Recipes are in ``_recipes.py``, maps of rows in ``_maps.py``, the factorisation in ``_cholesky.py``, ψ in ``_task.py``.
"""

from ._cholesky import Inverse as Inverse
from ._maps import FeatureMap as FeatureMap
from ._maps import Features as Features
from ._maps import FourierMap as FourierMap
from ._maps import KernelMap as KernelMap
from ._maps import PrecomputedMap as PrecomputedMap
from ._recipes import Auto, FeatureRecipe, Nystroem, PivotedCholesky, RandomFourier
from ._recipes import feature_recipe as feature_recipe
from ._task import NodeMap as NodeMap
from ._task import TaskFeatures as TaskFeatures
from ._task import TaskMap as TaskMap
from ._task import integrated_basis as integrated_basis
from ._task import node_basis as node_basis
from ._task import node_values as node_values
from ._task import task_features as task_features

__all__ = ["Auto", "FeatureRecipe", "Nystroem", "PivotedCholesky", "RandomFourier"]
