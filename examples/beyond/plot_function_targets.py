"""
How will this child grow? Whole curves as targets
=================================================

A clinic has measured children at their visits, each at ages of its own, four or five times between two and eighteen
years. From what is known at birth, parents' height and sex, it wants the whole curve of a new child, and the age at
which it will grow fastest. No two children were measured at the same age, so there is no table to regress.
"""

# %%
# The data are made up: a child grows along a line and a spurt, which comes earlier for girls. Each child has a
# deviation of its own, which nothing at birth tells, and each measurement an error of a centimetre.
import matplotlib.pyplot as plt
import numpy as np

from infinitask import InfiniteFunctionRegressor
from infinitask.plotting import LIGHT

rng = np.random.default_rng(0)


def height(X, age):
    """The mean height at an age, of children with these parents and sex (1: a girl)."""
    parents, girl = X[:, :1], X[:, 1:]
    spurt, when = 26.0 - 6.0 * girl, 13.5 - 2.0 * girl
    return (
        87.0
        + 0.3 * (parents - 170.0)
        + (4.5 + 0.02 * (parents - 170.0)) * (age - 2.0)
        + spurt / (1.0 + np.exp(-(age - when) / 0.8))
    )


n = 250
X = np.column_stack([rng.normal(170.0, 6.0, size=n), rng.integers(0, 2, size=n)])
ages = [np.sort(rng.uniform(2.0, 18.0, size=rng.integers(3, 7))) for _ in X]
heights = [
    height(x[None], age)[0] + 2.5 * rng.normal() + rng.normal(size=age.size) for x, age in zip(X, ages, strict=True)
]
print(f"{n} children, {sum(age.size for age in ages)} visits, {np.unique(np.concatenate(ages)).size} different ages")

# %%
# One fit, with everything by default. ``theta`` is a list of as many arrays as there are children.
model = InfiniteFunctionRegressor().fit(X, heights, theta=ages)
print(
    f"duality gap {model.dual_gap_:.1e}, width of the task kernel {(2.0 * model.task_kernel_.gamma) ** -0.5:.1f} years"
)

# %%
# Two children who were never measured: a girl and a boy with parents of 178 cm. ``predict`` answers at any age, and
# ``derivative`` is the speed of growth.
new = np.array([[178.0, 1.0], [178.0, 0.0]])
age = np.linspace(2.5, 17.5, 200)
curve, speed = model.predict(new, age), model.derivative(new, age)
truth = height(new, age)
print(f"largest error of the two curves: {np.abs(curve - truth).max():.1f} cm")
later = age > 8.0
for name, pace in zip(("girl", "boy"), speed, strict=True):
    print(f"the {name} grows fastest at {age[later][np.argmax(pace[later])]:.1f} years")

# %%
# On the left some of the children of the fit: their visits are joined by thin lines, and there is nothing between.
# In the middle the curves of the two new children beside the true means, on the right how fast they grow.
plt.rcParams.update(LIGHT.settings())
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
for own, seen in list(zip(ages, heights, strict=True))[:40]:
    left.plot(own, seen, "o-", color=LIGHT.ink, markersize=3, linewidth=0.6, alpha=0.5)
left.set(xlabel="age, years", ylabel="height, cm", title="Some of the children of the fit")
for k, name in enumerate(("girl", "boy")):
    middle.plot(age, curve[k], **LIGHT.curve(k), label=f"{name}, predicted")
    middle.plot(age, truth[k], "--", color=LIGHT.ink, linewidth=1.0, label="true mean" if k == 0 else None)
    right.plot(age, speed[k], **LIGHT.curve(k), label=name)
    right.plot(age, np.gradient(truth[k], age), "--", color=LIGHT.ink, linewidth=1.0)
middle.set(xlabel="age, years", ylabel="height, cm", title="Two new children")
middle.legend(loc="lower right")
right.set(xlabel="age, years", ylabel="growth, cm a year", title="When do they grow fastest?")
_ = right.legend(loc="lower left")

# %%
# The curves are close to the truth although no child was seen for more than a few days of its life. The speed is
# harder: a slope is known less well than a height, and near the first and the last visit least of all. A curve of
# quantiles, say what 90% of such children stay below, is the same call with ``loss="quantile", quantile=0.9``.
