"""``python -m suite``."""

from suite.run import main

if __name__ == "__main__":
    main()
