"""
Which inputs move the median, and which the risk
================================================

A clinic predicts how far diabetes will have come in a year. The median is what to expect; the quantile of level 0.95 is
what to be ready for. Do the same measurements of a patient move both? SHAP values answer it for any level of one
fit, and for the width of an interval as well.
"""

# %%
# The data are scikit-learn's set of 442 patients, with ten inputs that are already scaled. Three hundred patients
# train the model.
import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_diabetes

from infinitask import InfiniteQuantileRegressor
from infinitask.integrations import at_level

X, y = load_diabetes(return_X_y=True, as_frame=True)
names = list(X.columns)
order = np.random.default_rng(0).permutation(len(y))
X, y = X.to_numpy()[order], y.to_numpy()[order]
model = InfiniteQuantileRegressor(n_nodes=20).fit(X[:300], y[:300])

# %%
# SHAP explains a function of X with one or more columns. ``at_level`` makes such a function of a model: here it has
# three columns, the quantiles of levels 0.05, 0.5 and 0.95, and they are explained together. Twenty patients
# of the fit are the background, and thirty-five new ones are explained.
levels = [0.05, 0.5, 0.95]
view = at_level(model, quantiles=levels)
explainer = shap.Explainer(view.predict, X[:20], algorithm="permutation", feature_names=names, seed=0)
values = explainer(X[300:335], max_evals=84, silent=True)
print(values.shape, "patients, inputs, levels")

# %%
# SHAP values add up: with the mean of the background they give each prediction.
np.testing.assert_allclose(values.values.sum(axis=1) + values.base_values, view.predict(X[300:335]), atol=1e-6)

# %%
# They are linear in the function, too: those of the width of the central 90 % interval are the difference of those of
# its ends. An input may matter little for the median and much for the width.
low, median, high = np.moveaxis(values.values, 2, 0)
parts = {"median": median, "level 0.95": high, "width of 90 %": high - low}
size = {title: np.abs(part).mean(axis=0) for title, part in parts.items()}
for title, part in size.items():
    first = np.argsort(-part)[:3]
    print(f"{title:>14}: " + ", ".join(f"{names[j]} {part[j]:.1f}" for j in first))

# %%
# Left: the mean size of the SHAP values of each input. Right: body mass index, patient by patient. It moves the median
# most, the quantile of level 0.95 less and that of level 0.05 least: what to expect depends on it more than the
# extremes do, and with a high index the interval is wider.
rows = np.argsort(size["median"])
place = np.arange(len(rows))
colours = {"median": "#1b6ca8", "level 0.95": "#c0392b", "width of 90 %": "#9aa0a6"}
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
for k, (title, part) in enumerate(size.items()):
    left.barh(place + 0.27 * (1 - k), part[rows], height=0.25, color=colours[title], label=title)
left.set_yticks(place, [names[j] for j in rows])
left.set_xlabel("mean |SHAP value|")
left.legend(frameon=False, loc="lower right")
bmi = names.index("bmi")
parts["level 0.05"], colours["level 0.05"] = low, "#2e8b57"
for title in ("level 0.05", "median", "level 0.95"):
    right.plot(X[300:335, bmi], parts[title][:, bmi], "o", ms=5, alpha=0.8, color=colours[title], label=title)
right.axhline(0.0, color="0.7", lw=0.8, zorder=0)
right.set_xticks([-0.08, -0.04, 0.0, 0.04, 0.08])
right.set_xlabel("body mass index (scaled)")
right.set_ylabel("SHAP value of body mass index")
right.legend(frameon=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
