"""What `mooring ui` looks at: the sources that its pages ask."""
