"""What goes to the Hugging Face Hub."""
