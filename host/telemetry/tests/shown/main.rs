//! What a host shows, read as a scraper reads it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot set itself up should say so at once"
)]

mod alerts;
mod metrics;
mod scrape;
