"""What is known of sizes while a kernel is lowered."""
