"""Grafana dashboards as code: metric families and the alert declaration come in, JSON and provisioning files go out."""
