"""Learning: an application's runs, some marked as good or bad, come in; a scenario that good runs keep to comes out."""
