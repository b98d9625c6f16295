"""What ranks send one another for a read: halos, exchanges, reads with steps."""
