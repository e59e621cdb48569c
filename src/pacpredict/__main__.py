"""`python -m pacpredict`: the program, also where its script is not on the path."""

import sys

from pacpredict.cli import main

sys.exit(main())
