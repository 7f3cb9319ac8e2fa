"""``python -P -m monitor`` is ``sidejudge``; ``-P`` keeps the working directory off the import path."""

from .cli import main

if __name__ == "__main__":
    main()
