"""What ``workstead doctor`` looks at, a module per side."""
