"""python -m recurra"""

import os
import sys

# `python -m` looks into the current folder first; like `recurra`, this looks there last (see cli.main).
if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from recurra.cli import main

sys.exit(main())
