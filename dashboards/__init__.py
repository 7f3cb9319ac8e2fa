"""Pages, alerting rules, Grafana dashboards and runbooks: declarations and snapshots come in, files and HTML go out."""
