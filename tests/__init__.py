"""The tests: one folder for each package of the library, and laws, references, documentation beside them."""
