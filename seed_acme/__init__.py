"""SEED RL on TensorFlow 2, Reverb, Sonnet and Launchpad."""
