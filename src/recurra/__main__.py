"""python -m recurra, and the command recurra: nothing is imported outside of a function that Ctrl-C may end."""

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
    return command_line(stopped=leave)


if __name__ == "__main__":
    sys.exit(main())
