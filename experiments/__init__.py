"""The paper's tables and figures, and a comparison with what one would use today: ``python -m experiments --help``."""
