"""python -m recurra"""

import sys

from recurra.cli import main

sys.exit(main())
