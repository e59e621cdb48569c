"""The edge towards untrusted clients: HTTP in, releases out."""
