"""
Which grower? Three classes, and costs chosen after the fit
===========================================================

Three growers bottle wine in one valley of Italy, and two numbers of the laboratory tell whose a bottle is: its colour
and its flavanoids. A shop sorts bottles that lost their labels. An auditor must find all bottles of the second grower,
who has not paid. The third grower puts his name on a bottle only where he is sure. All of them ask the same model;
only their costs differ.
"""

# %%
# The data are the wines of Forina and others (1991), as scikit-learn has them: 178 bottles. Half train, half judge.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from infinitask import InfiniteCostSensitiveClassifier

wine = load_wine(as_frame=True)
X = wine.data[["color_intensity", "flavanoids"]].to_numpy()
grower = np.array(["first", "second", "third"])[wine.target]
train, new, grower_train, grower_new = train_test_split(X, grower, test_size=0.5, random_state=0, stratify=grower)

# %%
# One fit for all costs, with one certificate.
model = InfiniteCostSensitiveClassifier(n_nodes=32, tol=1e-3).fit(train, grower_train)
print(f"{model.classes_.tolist()}: accuracy {model.score(new, grower_new):.3f}, duality gap {model.dual_gap_:.0e}")

# %%
# What a missed bottle of each grower costs, in the order of the classes.
policies = {
    "the shop: all cost the same": [1, 1, 1],
    "the auditor: a missed second costs 20": [1, 20, 1],
    "the third grower: a missed third costs 1/20": [20, 20, 1],
}
colour, flavanoids = np.meshgrid(np.linspace(1, 13.5, 160), np.linspace(0, 4.2, 160))
plane = np.column_stack([colour.ravel(), flavanoids.ravel()])
colours = ["#4477aa", "#ee9955", "#228833"]

fig, axes = plt.subplots(1, 3, figsize=(11, 4), sharey=True, layout="constrained")
for ax, (name, costs) in zip(axes, policies.items(), strict=True):
    region = np.searchsorted(model.classes_, model.predict(plane, costs)).reshape(colour.shape)
    ax.contourf(colour, flavanoids, region, levels=[-0.5, 0.5, 1.5, 2.5], colors=colours, alpha=0.25)
    for k, label in enumerate(model.classes_):
        ax.scatter(*new[grower_new == label].T, s=12, color=colours[k], label=label)
    found = model.predict(new, costs)
    right = ", ".join(f"{label} {np.mean(found[grower_new == label] == label):.0%}" for label in model.classes_)
    ax.set_title(name, fontsize="medium")
    ax.set_xlabel(f"colour\nfound: {right}")
axes[0].set_ylabel("flavanoids")
axes[0].legend(loc="upper right")

# %%
# The region of the second grower grows where a missed bottle is dear, and that of the third shrinks to the bottles that
# are certainly his.
#
# The share of all costs at which a class wins is its probability:
p = model.predict_proba(new)
print(f"log loss {log_loss(grower_new, p):.3f}; mean probabilities {p.mean(axis=0).round(3).tolist()}")

# %%
# Any matrix of costs will do. Each row is a true class: here it is dear to take a bottle of the second grower for one
# of the third.
costs = np.array([[0.0, 1.0, 1.0], [2.0, 0.0, 10.0], [1.0, 1.0, 0.0]])
truth = np.searchsorted(model.classes_, grower_new)
for name, labels in (("the shop", model.predict(new)), ("by the matrix", model.predict(new, costs=costs))):
    print(f"{name}: mean cost {costs[truth, np.searchsorted(model.classes_, labels)].mean():.3f}")
