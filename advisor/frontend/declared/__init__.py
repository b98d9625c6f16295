"""What is declared of a kernel: annotations, decorators, what its module says, what runs showed."""
