//! The numbers of gRPC's statuses.

/// Done.
pub const OK: u32 = 0;
/// Given up by the client.
pub const CANCELLED: u32 = 1;
/// No other fits.
pub const UNKNOWN: u32 = 2;
/// The request is wrong whatever the state.
pub const INVALID_ARGUMENT: u32 = 3;
/// Not done in time.
pub const DEADLINE_EXCEEDED: u32 = 4;
/// Something named is not there.
pub const NOT_FOUND: u32 = 5;
/// Something to be made is there.
pub const ALREADY_EXISTS: u32 = 6;
/// Known, and not allowed.
pub const PERMISSION_DENIED: u32 = 7;
/// A quota is used up.
pub const RESOURCE_EXHAUSTED: u32 = 8;
/// The state does not permit it.
pub const FAILED_PRECONDITION: u32 = 9;
/// Given up by the server, as for a conflict.
pub const ABORTED: u32 = 10;
/// Beyond a limit.
pub const OUT_OF_RANGE: u32 = 11;
/// The server has no such method.
pub const UNIMPLEMENTED: u32 = 12;
/// The server is broken.
pub const INTERNAL: u32 = 13;
/// The server can't now.
pub const UNAVAILABLE: u32 = 14;
/// Not known who calls.
pub const UNAUTHENTICATED: u32 = 16;
