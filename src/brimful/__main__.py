"""`python -m brimful` is `brimful`."""

import sys

from brimful.cli import main

if __name__ == "__main__":
    sys.exit(main())
