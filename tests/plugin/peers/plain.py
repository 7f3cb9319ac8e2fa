"""A plain function: a truth value is a metric."""


def apologises_once(case):
    return str(case.model_output).lower().count("sorry") <= 1
