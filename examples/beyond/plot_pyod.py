"""
The contamination, changed after the fit, in PyOD
=================================================

A detector of PyOD is told the share of outliers before it is fitted. Who knows that share? One sees the alarms, finds
them too many or too few, and would like to move the threshold. And does a threshold that marks 5 % of the rows of the
fit mark 5 % of tomorrow's rows, if nothing has changed?
"""

# %%
# The data are made up: five sensors of a machine with three ways to run. 150 rows to learn from, all of them usual,
# then 4000 usual rows of the days after, and 400 in which one sensor is off.
import matplotlib.pyplot as plt
import numpy as np
from pyod.models.gmm import GMM
from pyod.models.knn import KNN
from pyod.models.ocsvm import OCSVM
from sklearn.metrics import roc_auc_score, roc_curve

from infinitask import InfiniteOneClassSVM
from infinitask.integrations.pyod import InfiniteOneClassDetector
from infinitask.plotting import LIGHT

rng = np.random.default_rng(0)


def machine(n):
    """Rows of a machine that runs in one of three ways."""
    return 4.0 * np.eye(5)[rng.integers(3, size=n)] + rng.normal(scale=0.6, size=(n, 5))


train, usual, off = machine(150), machine(4000), machine(400)
off[np.arange(400), rng.integers(5, size=400)] += rng.choice([-2.5, 2.5], size=400)

# %%
# Our detector beside three of PyOD's. It has the kernel that PyOD's one-class SVM has by default, so that the two
# differ in nothing but what is done with it.
models = {
    "infinite one-class SVM": InfiniteOneClassDetector(
        InfiniteOneClassSVM(nested=True, exact_fractions=True, gamma=0.2), random_state=0
    ),
    "one-class SVM": OCSVM(),
    "Gaussian mixture": GMM(n_components=3, random_state=0),
    "nearest neighbours": KNN(),
}
for model in models.values():
    model.fit(train)

# %%
# Now the contamination is changed. PyOD's detectors take the new number and go on as before; they would have to be
# fitted again. Ours moves its threshold and the labels of its rows.
for name in ("one-class SVM", "infinite one-class SVM"):
    model = models[name]
    alarms = []
    for contamination in (0.05, 0.1, 0.2):
        model.set_params(contamination=contamination)
        alarms.append(f"{np.mean(model.predict(usual)):.1%}")
    print(f"{name}: alarms among new usual rows at 5, 10 and 20 %: {', '.join(alarms)}")

# %%
# For a fair comparison, the others get the threshold of each contamination too, by PyOD's rule. Left, the alarms among
# new usual rows. A mixture, a density or a support vector machine has seen the rows by which it sets its threshold, and
# they look more usual to it than new ones do. Nearest neighbours do not count the row itself, and our detector scores
# its rows by fits without them; for both, the share asked for is about the share of alarms. Right, how well the scores
# tell usual rows from others: with the same kernel both machines see nearly the same.
shares = np.linspace(0.02, 0.5, 25)
plt.rcParams.update(LIGHT.settings())
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
left.plot(shares, shares, linestyle=":", color=LIGHT.ink, label="what was asked for")
truth = np.repeat([0, 1], [len(usual), len(off)])
for k, (name, model) in enumerate(models.items()):
    scores = model.decision_function(np.vstack([usual, off]))
    thresholds = np.quantile(model.decision_scores_, 1.0 - shares)
    left.plot(shares, np.mean(scores[truth == 0, None] > thresholds, axis=0), **LIGHT.curve(k), label=name)
    false, true, _ = roc_curve(truth, scores)
    right.plot(false, true, **LIGHT.curve(k), label=f"{name}, area {roc_auc_score(truth, scores):.2f}")
left.set(title="Alarms among new usual rows", xlabel="contamination", ylabel="share of alarms")
right.set(title="Rows with a sensor that is off", xlabel="false alarms", ylabel="found")
left.legend()
_ = right.legend()

# %%
# A threshold of −0.2 is the model's own level set of the fraction 0.2. With ``threshold="level"`` the detector uses
# just that, and says what the model says.
detector = models["infinite one-class SVM"].set_params(threshold="level", contamination=0.2)
same = np.array_equal(detector.predict(usual) == 1, detector.detector_.predict(usual, nu=0.2) == -1)
print(f"threshold {detector.threshold_:.2f}; the detector says what the model says: {same}")
