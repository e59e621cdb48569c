"""What a deployment would be worth, measured before there is a secret: accuracy, and what it is lost to."""
