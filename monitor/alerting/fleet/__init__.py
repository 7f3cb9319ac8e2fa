"""What each monitor's verdicts add up to comes in; one status of every service of the fleet goes out."""
