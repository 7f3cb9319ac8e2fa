"""Reading by shape: what no dialect knows by its name → what its name's last words and its value show that it is."""
