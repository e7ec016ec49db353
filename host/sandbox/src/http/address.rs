//! Which addresses are on the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: its first address and the bits that all of it share.
type Network4 = (Ipv4Addr, u32);
type Network6 = (Ipv6Addr, u32);

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u32) -> Network4 {
    (Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(a: u16, b: u16, c: u16, bits: u32) -> Network6 {
    (Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), bits)
}

/// Networks of version 4 that no server on the public internet is in.
const CLOSED4: [Network4; 17] = [
    v4(0, 0, 0, 0, 8),          // this network, unspecified
    v4(10, 0, 0, 0, 8),         // private
    v4(100, 64, 0, 0, 10),      // carrier-grade translation; a metadata service of Alibaba's
    v4(127, 0, 0, 0, 8),        // loopback
    v4(168, 63, 129, 16, 32),   // Azure's host, which is reached from inside alone
    v4(169, 254, 0, 0, 16),     // link-local; the metadata service of most clouds
    v4(172, 16, 0, 0, 12),      // private
    v4(192, 0, 0, 0, 24),       // protocol assignments; a metadata service of Oracle's
    v4(192, 0, 2, 0, 24),       // documentation
    v4(192, 88, 99, 0, 24),     // relays of 6to4
    v4(192, 168, 0, 0, 16),     // private
    v4(198, 18, 0, 0, 15),      // benchmarks
    v4(198, 51, 100, 0, 24),    // documentation
    v4(203, 0, 113, 0, 24),     // documentation
    v4(224, 0, 0, 0, 4),        // multicast
    v4(240, 0, 0, 0, 4),        // reserved
    v4(255, 255, 255, 255, 32), // broadcast
];

/// All that is public of version 6: unicast that is routed everywhere.
const OPEN6: Network6 = v6(0x2000, 0, 0, 3);

/// What is in there, and closed.
const CLOSED6: [Network6; 4] = [
    v6(0x2001, 0, 0, 23),     // protocol assignments: Teredo, ORCHID, benchmarks
    v6(0x2001, 0xdb8, 0, 32), // documentation
    v6(0x3fff, 0, 0, 20),     // documentation
    v6(0x5f00, 0, 0, 16),     // segment identifiers
];

const MAPPED: Network6 = (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
const SIX_TO_FOUR: Network6 = v6(0x2002, 0, 0, 16);
const NAT64: Network6 = v6(0x64, 0xff9b, 0, 96);

/// Whether an address is one of the public internet, by what it leads to: an address of version 6 that stands for
/// one of version 4 is judged as that one.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public4(address),
        IpAddr::V6(address) => is_public6(address),
    }
}

fn is_public4(address: Ipv4Addr) -> bool {
    !CLOSED4.iter().any(|network| in4(address, *network))
}

fn is_public6(address: Ipv6Addr) -> bool {
    let [_, a, b, _, _, _, c, d] = address.segments();
    if in6(address, MAPPED) || in6(address, NAT64) {
        return is_public4(joined(c, d));
    }
    if in6(address, SIX_TO_FOUR) {
        return is_public4(joined(a, b));
    }
    in6(address, OPEN6) && !CLOSED6.iter().any(|network| in6(address, *network))
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

fn in4(address: Ipv4Addr, (network, bits): Network4) -> bool {
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
    (address.to_bits() ^ network.to_bits()) & mask == 0
}

fn in6(address: Ipv6Addr, (network, bits): Network6) -> bool {
    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
    (address.to_bits() ^ network.to_bits()) & mask == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fr_24_only_addresses_of_the_public_internet_are_public() {
        for (text, public) in [
            ("1.1.1.1", true),
            ("8.8.8.8", true),
            ("172.15.255.255", true),
            ("172.32.0.0", true),
            ("100.63.255.255", true),
            ("100.128.0.0", true),
            ("223.255.255.255", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("100.100.100.200", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("168.63.129.16", false),
            ("168.63.129.17", true),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.192", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("198.19.255.255", false),
            ("198.51.100.7", false),
            ("203.0.113.7", false),
            ("224.0.0.1", false),
            ("239.255.255.250", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700::1111", true),
            ("2001:4860:4860::8888", true),
            ("2a00:1450::1", true),
            ("::", false),
            ("::1", false),
            // The forms that stand for an address of version 4.
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("::ffff:1.1.1.1", true),
            ("::ffff:0:127.0.0.1", false),
            ("::127.0.0.1", false),
            ("::1.1.1.1", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("64:ff9b::101:101", true),
            ("64:ff9b:1::101:101", false),
            ("2002:7f00:1::", false),
            ("2002:c0a8:101::1", false),
            ("2002:101:101::1", true),
            ("2001::1", false),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", false),
            ("2001:2::1", false),
            ("2001:20::1", false),
            ("2001:db8::1", false),
            ("3fff::1", false),
            ("5f00::1", false),
            ("100::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(text.parse().unwrap()), public, "{text}");
        }
    }
}
