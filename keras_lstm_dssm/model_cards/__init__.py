"""Model cards: CARD.md of runs and of exported models, in the Hub's form."""
