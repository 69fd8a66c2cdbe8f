"""What training and translating cost, and the peers they are measured against."""
