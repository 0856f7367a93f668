"""`sightline serve`: an HTTP API, and pages on this machine. Needs the extra `serve`."""
