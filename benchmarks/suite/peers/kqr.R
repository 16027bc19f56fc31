# Kernel quantile regression by kernlab: folder n d sigma C budget level...
# Prints a line about itself, then level, seconds of the fit and b of each level; writes the coefficients to coef.bin.
suppressPackageStartupMessages(library(kernlab))
arguments <- commandArgs(TRUE)
folder <- arguments[1]
numbers <- as.numeric(arguments[-1])
n <- numbers[1]
d <- numbers[2]
sigma <- numbers[3]
C <- numbers[4]
budget <- numbers[5]
levels <- numbers[-(1:5)]
X <- matrix(readBin(file.path(folder, "X.bin"), "double", n * d, endian = "little"), n, d)
y <- readBin(file.path(folder, "y.bin"), "double", n, endian = "little")
blas <- extSoftVersion()["BLAS"]
blas <- file.path(basename(dirname(blas)), basename(blas))
cat("R ", format(getRversion()), ", kernlab ", format(packageVersion("kernlab")), ", BLAS ", blas, "\n", sep = "")
coefficients <- file(file.path(folder, "coef.bin"), "wb")
begun <- proc.time()[["elapsed"]]
for (level in levels) {
  started <- proc.time()[["elapsed"]]
  model <- kqr(X, y, scaled = FALSE, tau = level, C = C, kernel = "rbfdot", kpar = list(sigma = sigma), fit = FALSE)
  ended <- proc.time()[["elapsed"]]
  cat(format(c(level, ended - started, b(model)), digits = 17), "\n")
  writeBin(as.double(coef(model)), coefficients, endian = "little")
  if (ended - begun > budget) break
}
close(coefficients)
