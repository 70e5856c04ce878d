"""python -m recurra, and the command recurra: nothing is imported outside of a function that Ctrl-C may end."""

import gc
import os
import sys


def main() -> int:
    """Run the command line."""
    # `python -m` looks into the current folder first; like `recurra`, this looks there last (see cli.main).
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]
    try:
        from recurra.cli import main as command_line
        from recurra.interrupts import leave
    except KeyboardInterrupt:
        print("\nrecurra: stopped.", file=sys.stderr)
        return 130
    status = command_line(stopped=leave)
    gc.freeze()  # the process ends: Python need not go through all that was loaded for cycles, as it does three times
    return status


if __name__ == "__main__":
    sys.exit(main())
