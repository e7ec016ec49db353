//! Values that are one word out of a list.

use std::fmt;

/// An enumeration whose variants are words of the configuration.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$each])* $variant),+ }

        impl $name {
            pub(crate) const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word that stands for it in the configuration.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl Word for $name {
            fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

/// A type that a word stands for.
pub(crate) trait Word: Sized {
    /// What the word stands for; none for a word of another list.
    fn from_word(word: &str) -> Option<Self>;
}

words! {
    /// `host.log.format`.
    LogFormat {
        /// Text on a terminal, JSON elsewhere.
        Auto = "auto",
        /// Text.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
    }
}

words! {
    /// `host.log.level`: the least severe events that are logged.
    LogLevel {
        /// A message may be lost or duplicated.
        Error = "error",
        /// Faults of a broker, findings.
        Warn = "warn",
        /// Lifecycle and routed messages.
        Info = "info",
        /// What the host does.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

words! {
    /// `embedded.store`.
    Store {
        /// On disk, in the state directory.
        Durable = "durable",
        /// In memory: gone with the process.
        Memory = "memory",
    }
}

words! {
    /// What is done about queues, topics and policies at start-up.
    Provision {
        /// What is missing is made.
        Create = "create",
        /// It must exist and fit; each difference is named.
        Validate = "validate",
        /// Nothing is asked.
        Assume = "assume",
    }
}

words! {
    /// `dispatch`: how many messages of a subscription are handled at once.
    Dispatch {
        /// Up to `concurrency`; those of one ordering key one after another.
        Concurrent = "concurrent",
        /// One after another.
        Sequential = "sequential",
    }
}

words! {
    /// `semantics`: what the configuration asks for (S-1).
    Semantics {
        /// A message may be handled more than once.
        AtLeastOnce = "at-least-once",
        /// The same, with duplicates acknowledged without a call while they are remembered.
        Deduplicated = "deduplicated",
    }
}

words! {
    /// `envelope`: what the body of a message that came over a topic is.
    Envelope {
        /// The publisher's body as it is.
        Raw = "raw",
        /// A JSON envelope that holds the publisher's body and attributes.
        Enveloped = "enveloped",
    }
}

words! {
    /// `source.pubsub.mode`: how messages come from a subscription of Pub/Sub.
    PubsubMode {
        /// Pushed over a stream as soon as they are there.
        Stream = "stream",
        /// Asked for.
        Pull = "pull",
    }
}

words! {
    /// `rocketmq.kind`: what a topic of RocketMQ promises.
    TopicKind {
        /// No order.
        Normal = "normal",
        /// Messages of one group come in order.
        Fifo = "fifo",
    }
}

words! {
    /// `runtime` of a handler: which engine profile it runs in.
    Runtime {
        /// As the component looks: a large one is heavy.
        Auto = "auto",
        /// Compiled languages: small slots, a fresh instance for each message.
        Lean = "lean",
        /// Languages that bring an interpreter: larger slots, and instances that may be used again.
        Heavy = "heavy",
    }
}

words! {
    /// `scheme` of a host that a handler may call.
    HttpScheme {
        /// With TLS.
        Https = "https",
        /// Without: what is sent can be read and changed on its way.
        Http = "http",
    }
}
