"""``python -m advisor``: the command line."""

from advisor.cli.app import run

if __name__ == "__main__":
    run()
