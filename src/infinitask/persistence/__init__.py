"""Models in files without pickle: loading one runs no code from the file.

* :func:`save` writes a model, or a pipeline that holds one, into a safetensors file (extra "save").
* :func:`load` makes it again. It makes objects of known classes only, and treats every file as one from a stranger.
* :func:`register` adds a class of your own to the known ones.

A file holds arrays, and a table of all other values as JSON. An entry of the table refers to entries before it, so
there are no cycles, and reading is one pass:

* :mod:`~infinitask.persistence._names` knows which classes and functions a file may name, and how errors show it;
* :mod:`~infinitask.persistence._rules` says which attributes an object may get, and what parameters may be that
  open files or start processes;
* :mod:`~infinitask.persistence._kinds` has the kinds of entries, each with its way into a file and back;
* :mod:`~infinitask.persistence._special` has the few types of other libraries that need their own way;
* :mod:`~infinitask.persistence._entries` turns a model into the table and the arrays, and back, and says how many
  entries of a kind there may be;
* :mod:`~infinitask.persistence._file` is the file itself: its limits, its checksum, its version and the steps
  from older ones.
"""

from ._file import load, save
from ._names import register

__all__ = ["load", "register", "save"]
