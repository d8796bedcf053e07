"""The one error that users cause and can mend."""


class InputError(ValueError):
    """Something the user gave is wrong: a file, a line, a name, a port.

    The message is one line that says what was found, where, what was
    expected and what to do. The programs in `tools/` print it as it is and
    exit with code 1; anything else that is raised is a defect.
    """
