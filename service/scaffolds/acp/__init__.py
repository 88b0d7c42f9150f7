"""Any program that speaks the Agent Client Protocol (version 1) on standard input and output."""
