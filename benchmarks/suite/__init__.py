"""The library beside what a user would pick instead, on seeded synthetic data.

Run ``python -m suite`` in ``benchmarks/``; ``--help`` lists the options. :mod:`suite.problems` has the problems,
:mod:`suite.ours` and :mod:`suite.peers` the methods, :mod:`suite.duality` measures how exact an answer is,
:mod:`suite.clock` measures time, :mod:`suite.report` writes the tables.
"""
