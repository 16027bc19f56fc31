"""Which fits are timed and what is expected of them, and which held-out losses are compared."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["QUALITY_FITS", "ROWS", "QualityFit", "Row"]


@dataclass(frozen=True)
class Row:
    """A fit of ours.

    Parameters
    ----------
    problem, fit : str
        See ``price_problems.py`` and ``price_fits.py``.
    goal : float, optional
        Processor seconds.
    peers : tuple of str
        What one would use instead.
    at_base : bool
        Whether the fit is compared with the earlier commit.
    seeds : int
        Samples of the table. Goals are for the slowest; losses beside opponents are those of the first one.
    """

    problem: str
    fit: str
    goal: float | None = None
    peers: tuple[str, ...] = ()
    at_base: bool = False
    seeds: int = 3


BOOSTERS = ("LightGBM", "CatBoost")
CLASSIFIERS = ("boosting", "logistic")
MANY = ("SVC", "calibrated SVC", "logistic")
CUSTOMERS = "8 000 × 15 mixed columns, 2.25% positives"

ROWS = (
    Row("3 000 × 15, 2% positives", "default", 4.0, CLASSIFIERS, at_base=True),
    Row("3 000 × 15, 2% positives", "rank 300"),
    Row(CUSTOMERS, "default", 8.0, CLASSIFIERS, at_base=True),
    Row("5 000 × 20, 41 positives", "default", 8.0, CLASSIFIERS, at_base=True),
    Row("five classes, 1 000 × 8", "default", None, MANY, at_base=True),
    Row("five classes, 2 000 × 8", "default", 6.0, MANY, at_base=True),
    Row("twenty classes, 300 × 10", "default", 3.0, MANY, at_base=True),
    Row("level sets, 3 000 × 10", "default", 3.0, ("OneClassSVM", "99 × OneClassSVM"), at_base=True),
    Row("10 000 × 20", "default", None, BOOSTERS, at_base=True),
    Row("one-hot, 9 800 × 164", "default", 15.0, BOOSTERS, at_base=True),
    Row("one-hot, 9 800 × 164", "sparse"),
    Row("1 000 × 8", "default", None, BOOSTERS),
    Row("1 000 × 8", "tuned", 6.0, at_base=True),
    Row("5 000 × 8", "default", None, BOOSTERS),
    Row("5 000 × 8", "tuned", 15.0, at_base=True),
    Row("1 000 × 30", "default", None, BOOSTERS),
    Row("1 000 × 30", "tuned", 6.0),
    Row("5 000 × 30", "default", None, BOOSTERS),
    Row("5 000 × 30", "tuned", 15.0),
    Row("50 000 × 30", "default", None, BOOSTERS),
    Row("50 000 × 30", "tuned", 80.0, seeds=1),
    Row("wide, 2 051 × 239", "default", None, BOOSTERS),
    Row("wide, 2 051 × 239", "tuned", seeds=1),
    Row(CUSTOMERS, "tuned", 40.0),
    Row("level sets, 3 000 × 10", "tuned", 15.0),
    Row("5 000 × 30", "tuned in time"),
    Row("50 000 × 30", "tuned in time"),
    Row("wide, 2 051 × 239", "tuned in time"),
    Row(CUSTOMERS, "tuned in time"),
    Row("level sets, 3 000 × 10", "tuned in time"),
)


@dataclass(frozen=True)
class QualityFit:
    """A fit whose held-out losses are compared on all tables of its kind.

    Parameters
    ----------
    kind, fit : str
    seeds : int
        Splits or samples of each table.
    scores : tuple of str
        What is compared; of AUC more is better.
    """

    kind: str
    fit: str
    seeds: int
    scores: tuple[str, ...]


QUALITY_FITS = (
    QualityFit("quantiles", "default", 5, ("integrated",)),
    QualityFit("costs", "default", 5, ("costs", "log loss", "AUC")),
    QualityFit("classes", "default", 3, ("log loss", "errors")),
    QualityFit("level sets", "default", 5, ("AUC",)),
    QualityFit("quantiles", "tuned", 2, ("integrated",)),
)
