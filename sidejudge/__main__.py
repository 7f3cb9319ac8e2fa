"""``python -m sidejudge`` is the command ``sidejudge``."""

from sidejudge.monitor.cli import main

if __name__ == "__main__":
    main()
