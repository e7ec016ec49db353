//! The cryptography of TLS, chosen once for the whole process.

/// Names ring. The clients bring two implementations into one build, and a TLS configuration that is made while
/// none is named panics then. So this is the first thing that the process does.
pub(crate) fn choose() {
    #[cfg(any(feature = "sqs", feature = "pubsub", feature = "rocketmq"))]
    {
        // Refused where one was named before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
