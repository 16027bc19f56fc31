"""The library beside what a user would pick instead, on seeded synthetic data.

``python -m suite`` in this folder's parent runs everything; ``--help`` names the options. :mod:`suite.problems` says
what is asked, :mod:`suite.ours` and :mod:`suite.peers` who answers, :mod:`suite.duality` how exact an answer is,
:mod:`suite.clock` how time is taken, :mod:`suite.report` what is written.
"""
