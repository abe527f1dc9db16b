explain
cards
