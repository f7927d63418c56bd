"""A dashboard for Grafana, and a program that shows it with a real Prometheus."""
