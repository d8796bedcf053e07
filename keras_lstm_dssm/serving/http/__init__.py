"""The HTTP server: TF Serving's REST API, metrics, health, and a page."""
