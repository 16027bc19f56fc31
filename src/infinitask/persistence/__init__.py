"""Models in files without pickle: loading one runs no code from the file.

* :func:`save` writes a model, or a pipeline that holds one, into a safetensors file (extra "save").
* :func:`load` restores it. It creates objects of known classes only, and treats every file as untrusted.
* :func:`register` adds your own class to the known ones.

A file holds arrays, and a table of all other values as JSON. An entry of the table refers only to earlier entries, so
there are no cycles and the table is read in one pass:

* :mod:`~infinitask.persistence._names` knows which classes and functions a file may name, and how errors show it;
* :mod:`~infinitask.persistence._rules` decides which attributes an object may get, and restricts parameters that
  open files or start processes;
* :mod:`~infinitask.persistence._kinds` defines the kinds of entries, each with a conversion to a file and back;
* :mod:`~infinitask.persistence._special` handles the few types of other libraries that need their own conversion;
* :mod:`~infinitask.persistence._entries` converts a model into the table and the arrays, and back, and limits the
  number of entries of each kind;
* :mod:`~infinitask.persistence._file` handles the file itself: its limits, its checksum, its version and the upgrades
  from older versions.
"""

from ._file import load, save
from ._names import register

__all__ = ["load", "register", "save"]
