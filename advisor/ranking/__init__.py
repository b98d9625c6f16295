"""From proposals to ranked findings: prices compared, evidence gathered."""
