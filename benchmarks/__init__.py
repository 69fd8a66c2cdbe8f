"""What training and decoding cost, and the implementations that they are compared with."""
