"""Who may call which route."""

# The same for everybody, and empty until a script fills them.
EMPTY_PAGES = ("/", "/docs", "/page.js", "/page.css")

# Written here a second time, so that nobody changes who may do what without saying so.
WHO_MAY = {
    ("GET", "/v2/health/live"): {None, "query", "read", "admin"},
    ("GET", "/v2/health/ready"): {None, "query", "read", "admin"},
    **{("GET", path): {None, "query", "read", "admin"} for path in EMPTY_PAGES},
    ("GET", "/page/promise"): {"query", "read", "admin"},
    ("GET", "/page/planner"): {"query", "read", "admin"},
    ("GET", "/page/plan"): {"query", "read", "admin"},
    ("GET", "/page/form"): {"query", "admin"},
    ("GET", "/page/live"): {"read", "admin"},
    ("GET", "/page/keys"): {"admin"},
    ("GET", "/page/interface"): {"query", "read", "admin"},
    ("GET", "/openapi.json"): {"query", "read", "admin"},
    ("POST", "/v2/models/{name}/infer"): {"query", "admin"},
    ("POST", "/v2/models/{name}/versions/{version}/infer"): {"query", "admin"},
    ("POST", "/invocations"): {"query", "admin"},
    ("GET", "/privacy"): {"query", "read", "admin"},
    ("GET", "/metrics"): {"read", "admin"},
    ("GET", "/keys"): {"admin"},
    ("GET", "/ping"): {"query", "read", "admin"},
    ("GET", "/v2"): {"query", "read", "admin"},
    ("GET", "/v2/models"): {"query", "read", "admin"},
    ("POST", "/v2/repository/index"): {"query", "read", "admin"},
    ("GET", "/v2/models/{name}"): {"query", "read", "admin"},
    ("GET", "/v2/models/{name}/versions/{version}"): {"query", "read", "admin"},
    ("GET", "/v2/models/{name}/ready"): {"query", "read", "admin"},
    ("GET", "/v2/models/{name}/versions/{version}/ready"): {"query", "read", "admin"},
}
