"""Files of cases or recorded telemetry come in; scenarios that good runs keep to go out."""
