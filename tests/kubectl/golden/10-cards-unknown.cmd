explain
cards nowhere
