//! Looks for everything that a handler must not see, and reports what it found: one `name=value` a line, in the
//! description of a rejection. A sealed sandbox gives `0` or `denied` everywhere.

use std::{env, fs, io, net};

use pumphouse_sdk::{Message, Outcome};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Outcome {
    if message.body == b"good" {
        return Outcome::ack();
    }
    Outcome::unacceptable(findings().join("\n"))
}

fn findings() -> Vec<String> {
    vec![
        format!("variables={}", env::vars_os().count()),
        format!("arguments={}", env::args_os().count()),
        format!("root={}", seen(fs::read_dir("/"))),
        format!("here={}", seen(fs::read_dir("."))),
        format!("passwd={}", seen(fs::read("/etc/passwd"))),
        format!("proc={}", seen(fs::read("/proc/self/environ"))),
        format!("write={}", seen(fs::write("/tmp/pumphouse-probe", "here"))),
        format!("connect={}", seen(net::TcpStream::connect("127.0.0.1:9180"))),
        format!("listen={}", seen(net::TcpListener::bind("127.0.0.1:0"))),
        format!("datagram={}", seen(net::UdpSocket::bind("127.0.0.1:0"))),
        format!("resolve={}", seen(net::ToSocketAddrs::to_socket_addrs("localhost:80"))),
        format!("input={}", io::Read::bytes(io::stdin()).take(1).filter(Result::is_ok).count()),
    ]
}

fn seen<T>(attempt: io::Result<T>) -> &'static str {
    if attempt.is_ok() { "seen" } else { "denied" }
}
