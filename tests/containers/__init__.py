"""The images in containers: real servers and jobs, cut off, killed and upgraded. Run by scripts/test-containers."""
