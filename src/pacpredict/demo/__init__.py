"""A deployment to look at: patients that come with scikit-learn, a server, and a client that asks it."""
