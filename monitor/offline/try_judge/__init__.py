"""Try judge: golden questions in, each judge's answers and what is wrong with them out."""
