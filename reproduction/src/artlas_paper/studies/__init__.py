"""What the paper reports, each table or figure from one command."""
