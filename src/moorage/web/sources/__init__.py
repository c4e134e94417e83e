"""What `moorage ui` looks at: the sources that its pages ask."""
