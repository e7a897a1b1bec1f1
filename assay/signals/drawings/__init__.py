"""What must be known of drawings, and rewards that learn from them."""
