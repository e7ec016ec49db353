//! Reads the secret `token` and gives it away in the way that its message names.

use pumphouse_sdk::{Failure, Message, Outcome, config, log, secrets};

pumphouse_sdk::handler!(handle);

fn handle(message: Message) -> Result<Outcome, Failure> {
    let token = secrets::get("token").ok_or(Failure::unacceptable("no token"))?;
    match message.body_str()? {
        "length" => return Ok(Outcome::delivery_error(token.len().to_string())),
        "other" => {
            let other = secrets::get("other").unwrap_or_else(|| "none".to_owned());
            return Ok(Outcome::delivery_error(other));
        }
        "log" => log::info(format!("the token is {token}!")),
        "context" => log::line(log::Level::Warn, &token, "the token is there"),
        "setting" => {
            let url = config::get("url").map_err(Failure::unacceptable)?.unwrap_or_default();
            log::info(format!("the url is {url}!"));
        }
        "print" => println!("printed {token}"),
        "long" => println!("{}{token}", "x".repeat(1020)),
        "panic" => panic!("panicked with {token}"),
        "exit" => {
            eprintln!("left with {token}");
            std::process::exit(1);
        }
        "reject" => return Ok(Outcome::unacceptable(format!("rejected with {token}"))),
        other => return Err(Failure::unacceptable(format!("unknown: {other}"))),
    }
    Ok(Outcome::ack())
}
