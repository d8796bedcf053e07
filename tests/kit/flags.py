"""Flags for programs, which take each of them once."""


def name_of(flag: str) -> str:
    """Returns the name that a flag sets, such as `n` of `--set=n=3`."""
    return flag.removeprefix("--").removeprefix("set=").split("=")[0]


def last_of_each(*flags: str) -> list[str]:
    """Leaves out flags that have another value further behind."""
    return [*{name_of(flag): flag for flag in flags}.values()]
