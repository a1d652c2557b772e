"""`python -m vllm.entrypoints.cli.main serve`, as far as its process tree goes."""

import actor

if __name__ == "__main__":
    actor.main()
