//! Installs the test servers, or runs one until its standard input closes or a signal comes.

use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use pumphouse_test_brokers::{
    ElasticMq, Fauxqs, PubsubEmulator, RocketMq, Setup, Storage, install,
};
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: pumphouse-test-brokers install [fauxqs|elasticmq|rocketmq|all]
       pumphouse-test-brokers start fauxqs|pubsub|rocketmq
       pumphouse-test-brokers start elasticmq [DIRECTORY FOR MESSAGES]";

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["install", "fauxqs"] => install_fauxqs().await,
        ["install", "elasticmq"] => install_elasticmq().await,
        ["install", "rocketmq"] => install_rocketmq().await,
        ["install"] | ["install", "all"] => install_all().await,
        ["start", "fauxqs"] => start_fauxqs().await,
        ["start", "pubsub"] => start_pubsub().await,
        ["start", "rocketmq"] => start_rocketmq().await,
        ["start", "elasticmq"] => start_elasticmq(Storage::Memory).await,
        ["start", "elasticmq", folder] => {
            start_elasticmq(Storage::Durable(PathBuf::from(folder))).await
        }
        _ => Err(USAGE.into()),
    };
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    let _ = writeln!(stderr(), "{error}");
    if let Some(cause) = error.source() {
        let _ = writeln!(stderr(), "because: {cause}");
    }
    ExitCode::FAILURE
}

async fn install_all() -> Outcome {
    install_fauxqs().await?;
    install_elasticmq().await?;
    install_rocketmq().await
}

async fn install_fauxqs() -> Outcome {
    let begin = announce("fauxqs")?;
    let folder = install::fauxqs().await?;
    Ok(writeln!(stderr(), "fauxqs is in {} ({:.0?})", folder.display(), begin.elapsed())?)
}

async fn install_elasticmq() -> Outcome {
    let begin = announce("elasticmq")?;
    let folder = install::elasticmq().await?;
    Ok(writeln!(stderr(), "elasticmq is in {} ({:.0?})", folder.display(), begin.elapsed())?)
}

async fn install_rocketmq() -> Outcome {
    let begin = announce("rocketmq")?;
    let folder = install::rocketmq().await?;
    Ok(writeln!(stderr(), "rocketmq is in {} ({:.0?})", folder.display(), begin.elapsed())?)
}

fn announce(server: &str) -> Result<Instant, Box<dyn Error>> {
    writeln!(stderr(), "installing {server}, which may take a minute")?;
    Ok(Instant::now())
}

async fn start_fauxqs() -> Outcome {
    let server = Fauxqs::start().await?;
    serve(&server.endpoint()).await
}

async fn start_elasticmq(storage: Storage) -> Outcome {
    let server = ElasticMq::start(storage).await?;
    serve(&server.endpoint()).await
}

async fn start_pubsub() -> Outcome {
    let server = PubsubEmulator::start().await?;
    serve(&server.endpoint()).await
}

/// Its endpoint is the name server's.
async fn start_rocketmq() -> Outcome {
    let setup = Setup::default().auto_create_topics().auto_create_groups();
    let server = RocketMq::start(setup).await?;
    serve(&server.namesrv()).await
}

/// Prints the endpoint as the one line of standard output and waits for the end.
async fn serve(endpoint: &str) -> Outcome {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    writeln!(stdout(), "{endpoint}")?;
    stdout().flush()?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = end_of_input() => {}
    }
    Ok(())
}

/// On a thread of its own: a read through the runtime would keep the process from ending.
async fn end_of_input() {
    let (ended, wait) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = ended.send(());
    });
    let _ = wait.await;
}
