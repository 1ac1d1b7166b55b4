"""Five diagnostic teams on one patient case, at once and one after another."""
