//! One suite, every configuration, both variants.
