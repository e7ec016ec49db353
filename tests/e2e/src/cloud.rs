//! Servers of the cloud transports.
