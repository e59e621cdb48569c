"""Pages for people, in one file each: HTML that escapes itself, plots as inline SVG, one style for screen and paper."""
