"""Fleet status: the sums of each monitor's verdicts come in; one status of every service of the fleet goes out."""
