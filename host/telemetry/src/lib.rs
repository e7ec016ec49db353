//! Metric names, log format and trace context in one place.
