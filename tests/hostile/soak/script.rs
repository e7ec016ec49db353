//! What happens, in order.

use std::fmt;
use std::time::{Duration, Instant};

use pumphouse_e2e::{Host, Scene, guest, publish_to};
use serde_json::{Value, json};

use crate::books::Books;
use crate::holdings::Holdings;
use crate::plan::{HONEST, HOSTILE, KILLS, Plan, SWAPPED, configuration};

/// A round: a message for each hostile tenant, and as many as this for each honest one.
const HONEST_MESSAGES: usize = 8;
const ROUND: Duration = Duration::from_millis(250);
/// What has not ended then never will.
const LAST_MESSAGES: Duration = Duration::from_secs(180);
/// What a process may have grown by and still be flat: its allocator keeps some of what was free once.
const MEMORY_SLACK: u64 = 32 << 20;
const FILES_SLACK: usize = 8;

/// A soak in progress.
pub(crate) struct Soak {
    plan: Plan,
    scene: Scene,
    books: Books,
    kills: u32,
    swaps: usize,
    swapped: Instant,
}

/// What it came to.
#[derive(Debug)]
pub(crate) struct Summary {
    published: usize,
    handled: usize,
    dead: usize,
    kills: u32,
    swaps: usize,
    lost: Vec<(&'static str, usize)>,
    exit: i32,
    quarter: Holdings,
    end: Holdings,
}

impl Soak {
    pub(crate) fn new(plan: Plan) -> Self {
        let scene = Scene::new(&configuration());
        let soak = Self {
            plan,
            scene,
            books: Books::default(),
            kills: 0,
            swaps: 0,
            swapped: Instant::now(),
        };
        soak.deploy();
        soak
    }

    pub(crate) fn run(mut self) -> Summary {
        let began = Instant::now();
        let mut host = self.scene.start();
        while self.kills < KILLS {
            self.rounds(&host, Instant::now() + self.plan.between_kills());
            drop(host.kill());
            self.kills += 1;
            host = self.scene.start();
        }
        self.rounds(&host, began + self.plan.quarter());
        let quarter = self.rounds(&host, Instant::now() + self.sampling());
        self.rounds(&host, began + self.plan.length - self.sampling());
        let end = self.rounds(&host, began + self.plan.length);
        let exit = self.finish(host);
        self.summary(exit, quarter, end)
    }

    fn sampling(&self) -> Duration {
        (self.plan.length / 10).min(Duration::from_secs(60))
    }

    /// Publishes to everybody until then; what the host held at the least.
    fn rounds(&mut self, host: &Host, until: Instant) -> Holdings {
        let mut samples = Vec::new();
        while Instant::now() < until {
            let round = Instant::now();
            for (tenant, _) in HOSTILE {
                // What the host that reads the dead letters makes of it: it says whose copy it is.
                self.publish(tenant, &json!({ "do": "report" }));
            }
            for tenant in HONEST {
                (0..HONEST_MESSAGES).for_each(|_| self.publish(tenant, &json!("order")));
            }
            self.swap();
            samples.push(Holdings::of(host.id()));
            std::thread::sleep(ROUND.saturating_sub(round.elapsed()));
        }
        self.read_logs();
        Holdings::least(&samples)
    }

    fn publish(&mut self, tenant: &'static str, body: &Value) {
        let id = publish_to(&self.scene.admin(), tenant, body);
        self.books.published(tenant, id);
    }

    fn swap(&mut self) {
        if self.swapped.elapsed() < self.plan.between_swaps() {
            return;
        }
        self.swaps += 1;
        self.swapped = Instant::now();
        self.deploy();
    }

    fn deploy(&self) {
        let version = SWAPPED.get(self.swaps % SWAPPED.len()).copied().unwrap_or_default();
        self.scene.deploy("swapped.wasm", &guest(version));
    }

    fn read_logs(&mut self) {
        let logs = self.scene.logs().len();
        for number in 1..=logs {
            self.books.read_on(self.scene.path(&format!("host-{number}.log")));
        }
    }

    /// Lets the host end what is left, then lets another one read the dead letters; the exit code of the first.
    fn finish(&mut self, host: Host) -> i32 {
        self.rest(&host, &HOSTILE.map(|(name, _)| name));
        self.rest(&host, &HONEST);
        let exit = host.stop();
        self.scene.configure(&readers());
        let reader = self.scene.start();
        let end = Instant::now() + LAST_MESSAGES;
        while !self.books.lost().is_empty() && Instant::now() < end {
            std::thread::sleep(ROUND);
            self.read_logs();
        }
        drop(reader.kill());
        exit
    }

    /// Waits until nothing waits in these queues.
    fn rest(&self, host: &Host, queues: &[&str]) {
        for queue in queues {
            host.until(LAST_MESSAGES, queue, || self.scene.peek(queue).is_empty());
        }
    }

    fn summary(self, exit: i32, quarter: Holdings, end: Holdings) -> Summary {
        Summary {
            published: self.books.count(),
            handled: self.books.handled(),
            dead: self.books.dead(),
            kills: self.kills,
            swaps: self.swaps,
            lost: self.books.lost(),
            exit,
            quarter,
            end,
        }
    }
}

/// A host that reads the dead letters, and says of each whose copy it is.
fn readers() -> String {
    let mut text = String::from(
        "[tenants.reader.handlers.reader]\ncomponent = \"{guests}/conformance.wasm\"\n\
         grants.logging = true\n",
    );
    for name in HOSTILE.map(|(name, _)| name).into_iter().chain(HONEST) {
        text += &format!(
            "\n[subscriptions.dead-{name}]\nsource = {{ embedded.queue = \"dead-{name}\" }}\n\
             handler = \"reader/reader\"\n"
        );
    }
    text
}

impl Summary {
    /// Whether all of it is as it should be.
    pub(crate) fn holds(&self) -> bool {
        self.lost.is_empty() && self.exit == 0 && self.is_flat()
    }

    fn is_flat(&self) -> bool {
        self.end.memory <= self.quarter.memory + MEMORY_SLACK
            && self.end.files <= self.quarter.files + FILES_SLACK
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { published, handled, dead, kills, swaps, .. } = self;
        writeln!(f, "published {published}, handled {handled}, dead {dead}")?;
        writeln!(f, "kills {kills}, swaps {swaps}, the last host's exit code {}", self.exit)?;
        match self.lost.as_slice() {
            [] => writeln!(f, "no message was lost")?,
            lost => writeln!(f, "LOST, by tenant: {lost:?}")?,
        }
        writeln!(f, "at a quarter: {}", self.quarter)?;
        writeln!(f, "at the end:   {}", self.end)?;
        write!(f, "{}", if self.is_flat() { "flat" } else { "NOT FLAT" })
    }
}
