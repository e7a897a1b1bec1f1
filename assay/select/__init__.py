"""Select: which samples do we learn from?"""
