"""Process supervision without people: values of beginnings by completing them, and what is learned from those."""
