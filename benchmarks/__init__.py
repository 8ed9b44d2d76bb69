"""What the chapter's code costs on one machine: ratios of things measured in one run (`make bench`)."""
