"""Finished runs as traces in OpenTelemetry's words for generative AI."""
