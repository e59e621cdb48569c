"""The description of the server for programs (OpenAPI 3.1), and the page that is made of it."""
