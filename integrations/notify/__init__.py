"""Receivers of notices: a worded notice comes in, a request to Slack, a webhook or Alertmanager goes out."""
