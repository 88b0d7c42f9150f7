"""Any program: argv from a template, the instruction by argument, standard input or file."""
