//! One server's side of the proxy, and the way of a connection's frames.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex as Lock, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::call::Answer;
use super::frame::{Frame, Header};
use super::request::{Request, Server, operation};
use super::rule::{Action, Edit};
use crate::faults::{Gate, InFlight, Journal, Rules, Serve, Valve};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests of one connection that may wait for an answer; beyond it the connection ends.
const WAITING_LIMIT: usize = 16_384;

/// Frames of one connection that may be held back in each direction; beyond it none is read.
const DELAYED_LIMIT: usize = 1_024;

/// Rules and journal, shared by the servers of a proxy.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) rules: Rules<Action, Request>,
    pub(super) journal: Arc<Journal<Request>>,
}

/// One server's state, shared by its connections.
#[derive(Debug)]
pub(super) struct Wire {
    server: Server,
    /// `HOST:PORT`.
    upstream: String,
    /// Addresses in answers, each in quotes, and what stands in their place.
    addresses: Vec<(String, String)>,
    shared: Arc<Shared>,
    pub(super) valve: Arc<Valve>,
}

impl Wire {
    pub(super) fn new(
        server: Server,
        upstream: String,
        addresses: Vec<(String, String)>,
        shared: Arc<Shared>,
    ) -> Self {
        let quoted = |address| format!("\"{address}\"");
        let addresses = addresses.into_iter().map(|(from, to)| (quoted(from), quoted(to)));
        let addresses = addresses.collect();
        Self { server, upstream, addresses, shared, valve: Arc::default() }
    }

    /// The body of an answer with the proxy's addresses. Not decoded: it is JSON with keys that
    /// are numbers, which no reader of JSON takes.
    fn readdressed(&self, body: Bytes) -> Bytes {
        let Ok(text) = std::str::from_utf8(&body) else { return body };
        if !self.addresses.iter().any(|(from, _)| text.contains(from)) {
            return body;
        }
        let replaced = self.addresses.iter();
        let replaced = replaced.fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
        replaced.into()
    }
}

impl Serve for Wire {
    fn valve(&self) -> &Arc<Valve> {
        &self.valve
    }

    /// Each connection has one of its own to the server, and they end together.
    async fn serve(self: Arc<Self>, gate: Gate) {
        let connecting = timeout(CONNECT_TIMEOUT, TcpStream::connect(&self.upstream)).await;
        let Ok(Ok(server)) = connecting else { return };
        // Without it a small frame would wait for the confirmation of the one before it.
        let _ = server.set_nodelay(true);
        let (from_client, to_client) = split(gate);
        let (from_server, to_server) = server.into_split();
        let link = Arc::new(Link {
            wire: self,
            to_client: Mutex::new(to_client),
            to_server: Mutex::new(to_server),
            waiting: Lock::default(),
        });
        // An error of either is a peer that left, or a rule. Neither is used again.
        tokio::select! {
            _ = link.up(from_client) => {}
            _ = link.down(from_server) => {}
        }
    }
}

/// What becomes of an answer.
enum After {
    Pass,
    Lose,
    Close,
    Delay(Duration),
    Rewrite(Arc<Edit>, Box<Request>),
}

struct Waiting {
    after: After,
    _in_flight: Option<InFlight<Request>>,
}

/// One connection.
struct Link {
    wire: Arc<Wire>,
    to_client: Mutex<WriteHalf<Gate>>,
    to_server: Mutex<OwnedWriteHalf>,
    /// Requests that wait for an answer, by their number.
    waiting: Lock<HashMap<i32, Waiting>>,
}

impl Link {
    /// The client's frames, until it leaves or a rule ends the connection.
    async fn up(self: &Arc<Self>, mut client: ReadHalf<Gate>) -> Result<()> {
        // Ends with this: what is held back goes with its connection.
        let mut delayed = JoinSet::new();
        while let Some(frame) = Frame::read(&mut client).await? {
            let header = frame.header()?;
            if header.is_answer() {
                frame.write(&mut *self.to_server.lock().await).await?;
            } else {
                self.follow(frame, &header, &mut delayed).await?;
            }
        }
        Ok(())
    }

    async fn follow(
        self: &Arc<Self>,
        frame: Frame,
        header: &Header,
        delayed: &mut JoinSet<()>,
    ) -> Result<()> {
        let request = Request::new(self.wire.server, header, &frame.body);
        let name = operation(request.code);
        let in_flight = self.wire.shared.journal.record(&name, request.kept());
        let action = self.wire.shared.rules.pick(&name, &request);
        let after = match action {
            Some(Action::DropBefore) => return Ok(()),
            Some(Action::CloseBefore) => return Err(closed()),
            Some(Action::Answer { code, remark }) => {
                return self.answer(header, code, &remark).await;
            }
            Some(Action::Hang) => return self.expect(header, After::Lose, Some(in_flight)),
            Some(Action::DropAfter) => After::Lose,
            Some(Action::CloseAfter) => After::Close,
            Some(Action::DelayAnswer(duration)) => After::Delay(duration),
            Some(Action::Rewrite(ref edit)) => After::Rewrite(edit.clone(), Box::new(request)),
            None | Some(Action::Delay(_) | Action::Twice) => After::Pass,
        };
        self.expect(header, after, Some(in_flight))?;
        match action {
            Some(Action::Delay(duration)) => self.send_later(frame, duration, delayed).await,
            Some(Action::Twice) => self.send_twice(&frame, header).await,
            _ => frame.write(&mut *self.to_server.lock().await).await,
        }
    }

    /// Remembers what becomes of the answer, if there is to be one.
    fn expect(
        &self,
        header: &Header,
        after: After,
        in_flight: Option<InFlight<Request>>,
    ) -> Result<()> {
        let mut waiting = self.waiting();
        if waiting.len() >= WAITING_LIMIT {
            return Err(closed());
        }
        if !header.is_one_way() {
            waiting.insert(header.opaque, Waiting { after, _in_flight: in_flight });
        }
        Ok(())
    }

    async fn answer(&self, header: &Header, code: i32, remark: &str) -> Result<()> {
        if header.is_one_way() {
            return Ok(());
        }
        let answer = Frame::new(&Header::answer(code, header.opaque, remark), Bytes::new());
        answer.write(&mut *self.to_client.lock().await).await
    }

    async fn send_later(
        self: &Arc<Self>,
        frame: Frame,
        duration: Duration,
        delayed: &mut JoinSet<()>,
    ) -> Result<()> {
        make_room(delayed).await;
        let link = self.clone();
        delayed.spawn(async move {
            sleep(duration).await;
            // A server that left is seen by those who read from it.
            let _ = frame.write(&mut *link.to_server.lock().await).await;
        });
        Ok(())
    }

    async fn send_twice(&self, frame: &Frame, header: &Header) -> Result<()> {
        let opaque = self.free_number();
        self.expect(&Header { opaque, ..header.clone() }, After::Lose, None)?;
        let mut server = self.to_server.lock().await;
        frame.write(&mut *server).await?;
        frame.renumbered(opaque)?.write(&mut *server).await
    }

    /// A number that no request waits under; clients count up from 0 or from anywhere.
    fn free_number(&self) -> i32 {
        let waiting = self.waiting();
        (i32::MIN..0).find(|number| !waiting.contains_key(number)).unwrap_or(i32::MIN)
    }

    /// The server's frames, until it leaves or a rule ends the connection.
    async fn down(self: &Arc<Self>, mut server: OwnedReadHalf) -> Result<()> {
        let mut delayed = JoinSet::new();
        while let Some(frame) = Frame::read(&mut server).await? {
            let header = frame.header()?;
            if header.is_answer() {
                self.pass_answer(frame, header, &mut delayed).await?;
            } else {
                frame.write(&mut *self.to_client.lock().await).await?;
            }
        }
        Ok(())
    }

    async fn pass_answer(
        self: &Arc<Self>,
        mut frame: Frame,
        header: Header,
        delayed: &mut JoinSet<()>,
    ) -> Result<()> {
        let waiting = self.waiting().remove(&header.opaque);
        frame.body = self.wire.readdressed(frame.body);
        match waiting.as_ref().map(|waiting| &waiting.after) {
            Some(After::Lose) => return Ok(()),
            Some(After::Close) => return Err(closed()),
            Some(After::Delay(duration)) => {
                let duration = *duration;
                return self.answer_later(frame, duration, waiting, delayed).await;
            }
            Some(After::Rewrite(edit, request)) => {
                frame = rewritten(frame, header, request, edit.as_ref());
            }
            Some(After::Pass) | None => {}
        }
        frame.write(&mut *self.to_client.lock().await).await
    }

    async fn answer_later(
        self: &Arc<Self>,
        frame: Frame,
        duration: Duration,
        waiting: Option<Waiting>,
        delayed: &mut JoinSet<()>,
    ) -> Result<()> {
        make_room(delayed).await;
        let link = self.clone();
        delayed.spawn(async move {
            sleep(duration).await;
            // A client that left is seen by those who read from it.
            let _ = frame.write(&mut *link.to_client.lock().await).await;
            drop(waiting);
        });
        Ok(())
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<i32, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rewritten(frame: Frame, header: Header, request: &Request, edit: &Edit) -> Frame {
    let Header { code, opaque, flag, remark, fields } = header;
    let mut answer = Answer { code, remark, fields, body: frame.body };
    edit(request, &mut answer);
    let Answer { code, remark, fields, body } = answer;
    Frame::new(&Header { code, opaque, flag, remark, fields }, body)
}

async fn make_room(delayed: &mut JoinSet<()>) {
    while delayed.try_join_next().is_some() {}
    if delayed.len() >= DELAYED_LIMIT {
        delayed.join_next().await;
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::ConnectionAborted, "closed by rule, or for too many requests")
}
