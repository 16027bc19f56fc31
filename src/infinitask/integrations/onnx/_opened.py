"""A model opened for its graph: the steps before it, the model that answers, and the models that this one asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from infinitask._base.arrays import HostArray, to_host
from infinitask._base.inner_model import steps_and_model
from infinitask.estimators import CrossConformal
from infinitask.features import KernelMap
from infinitask.features._maps import FourierMap
from infinitask.field import Field
from infinitask.pipelines import TransformedTarget


@final
@dataclass(frozen=True)
class Bare:
    """A field as a model, h alone at any task: what a graph asks of a fitted model."""

    field_: Field
    n_features_in_: int
    nodes_: HostArray
    _support: tuple[HostArray, HostArray]
    _looked_at: tuple[HostArray] | None

    @classmethod
    def of(cls, field: Field) -> Bare:
        """The model of a field whose columns are known."""
        left, nodes = getattr(field.left, "map", field.left), field.psi.landmarks[0][0]
        far = np.full(nodes.shape[1], np.inf)
        nodes = nodes[:, 0] if nodes.shape[1] == 1 else nodes
        if isinstance(left, KernelMap):
            return cls(field, int(left.landmarks.shape[1]), nodes, (-far, far), (to_host(left.landmarks),))
        if isinstance(left, FourierMap):
            return cls(field, int(left.frequencies.shape[0]), nodes, (-far, far), None)
        raise TypeError(
            "A field of a Gram matrix that was computed beforehand does not know its columns; export the model."
        )


class Opened(NamedTuple):
    """A model behind some steps.

    Parameters
    ----------
    steps : list of transformers
        What rows pass first.
    core : estimator or Bare
    inside : list of Opened
        The models that the core asks: one for each fold, or that of a transformed target.
    """

    steps: list[Any]
    core: Any
    inside: list[Opened]

    @classmethod
    def of(cls, model: Any) -> Opened:
        """Open a pipeline, a search, a model that tunes itself, or a field."""
        if isinstance(model, Field):
            return cls([], Bare.of(model), [])
        steps, core = steps_and_model(model, stop=lambda inner: hasattr(inner, "inverse_func"))
        asked = core.estimators_ if isinstance(core, CrossConformal) else []
        asked = [core.estimator_] if isinstance(core, TransformedTarget) else asked
        return cls([step for _, step in steps], core, [cls.of(one) for one in asked])

    @property
    def innermost(self) -> Any:
        """A model that knows its tasks."""
        return self.inside[0].innermost if self.inside else self.core

    @property
    def columns(self) -> int:
        """How many columns X has."""
        if self.inside and not self.steps:
            return self.inside[0].columns
        return int([*self.steps, self.core][0].n_features_in_)

    @property
    def knows_nodes_only(self) -> bool:
        """Whether it answers at the tasks of its fit alone."""
        field = self.innermost.field_
        return bool(field.knows_nodes_only or field.psi.kernel.describe().kind == "matrix")
