"""Fault injection: what a stop or a power cut leaves, and what the next command makes of it.

    python -m tests.faults          every disk of every command (make faults), a few minutes
    pytest tests/faults             a part of them, of which no kind is left out

*How.* A command runs once, in one process, and the disk is looked at before each operation that
changes it: before a file is created or opened for writing, forced to the disk, renamed, linked or
removed, before a folder is made or removed, and before two folders are exchanged. Python itself
tells of these operations (its audit events), whoever asks for them, a library or `uqno.storage`.
From what was seen follow the disks

* of *stops*: what is there before operation k, for every k, and with the file that was being
  written half full (`kill -9` at this instant);
* of *power cuts*: what was forced to the disk by then, and of what was not, each of the ways in
  which it may be lost: a file that was not synced is empty, cut or full of zeros; a name that was
  created, renamed or removed in a folder that was not synced since is as it was before, for any of
  these operations alone, for all but one, or for all. Operations on one folder keep their order, a
  rename between two folders is one operation, and nothing else is promised (see `disk.py`);
* of *damage*: a file of a finished command came back from the disk empty, cut, full of zeros or
  not at all.

Each different disk is then made, and the same command is run on it, in the same process. It must
end in the same result as the command that nobody stopped, or in one line that says what to do.
Nothing half-written may be read as whole, nothing that was whole before may be lost: what each
command has to keep is said where it is defined (see `commands.py`). Asides are renamed so that
they are those of a process that is gone.
"""
