//! What each tenant used since the last time, as lines of the log.

use std::collections::BTreeMap;
use std::time::Duration;

use pumphouse_contract::Account;
use pumphouse_contract::ports::{TenantStatus, Tenants};
use pumphouse_sandbox::Sandbox;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Logs every so often, and once more at the end, so that the lines of a process add up to what it did.
pub(crate) async fn keep(sandbox: Sandbox, every: Duration, stop: CancellationToken) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ledger = Ledger::default();
    loop {
        let stopped = tokio::select! {
            () = stop.cancelled() => true,
            _ = ticks.tick() => false,
        };
        ledger.say(&Tenants::list(&sandbox));
        if stopped {
            return;
        }
    }
}

/// The accounts as they were last said, by the names of tenants and handlers.
#[derive(Debug, Default)]
struct Ledger(BTreeMap<String, Account>);

impl Ledger {
    fn say(&mut self, tenants: &[TenantStatus]) {
        let of_handlers = tracing::enabled!(tracing::Level::DEBUG);
        for tenant in tenants {
            if let Some(used) = self.entered(&tenant.name, &tenant.account) {
                say_tenant(&tenant.name, &used);
            }
            let handlers = tenant.handlers.iter().filter(|_| of_handlers);
            for handler in handlers {
                if let Some(used) = self.entered(&handler.name, &handler.account) {
                    say_handler(&handler.name, &used);
                }
            }
        }
    }

    /// What was used since it was last said; none where that is nothing.
    fn entered(&mut self, name: &str, account: &Account) -> Option<Account> {
        let used = match self.0.get_mut(name) {
            Some(before) => account.since(&std::mem::replace(before, *account)),
            None => {
                self.0.insert(name.to_owned(), *account);
                *account
            }
        };
        (used.calls > 0 || used.dropped > 0 || used.log_dropped > 0).then_some(used)
    }
}

/// The same fields for both; a level of the log is fixed where the line is written.
macro_rules! say {
    ($level:ident, $who:ident, $used:ident, $text:literal) => {
        tracing::$level!(
            $who,
            messages = $used.calls,
            faults = $used.all_faults(),
            fault_kinds = kinds($used),
            cpu_ms = millis($used.cpu),
            memory_peak = $used.memory_peak_lately,
            host_calls = $used.host_calls,
            bytes_in = $used.bytes_in,
            bytes_out = $used.bytes_out,
            log_dropped = $used.log_dropped,
            waited_ms = millis($used.waited),
            $text
        )
    };
}

fn say_tenant(tenant: &str, used: &Account) {
    say!(info, tenant, used, "tenant account");
}

fn say_handler(handler: &str, used: &Account) {
    say!(debug, handler, used, "handler account");
}

/// `memory=3 trap=1`.
fn kinds(used: &Account) -> String {
    let kinds = used.fault_kinds().map(|(kind, faults)| format!("{kind}={faults}"));
    kinds.collect::<Vec<_>>().join(" ")
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_used_since_the_one_before() {
        let mut ledger = Ledger::default();
        let account = |calls| Account { calls, bytes_in: calls * 10, ..Account::default() };
        assert_eq!(ledger.entered("acme", &account(0)), None, "an idle tenant is not said");
        assert_eq!(ledger.entered("acme", &account(3)), Some(account(3)));
        assert_eq!(ledger.entered("acme", &account(3)), None);
        assert_eq!(ledger.entered("acme", &account(5)), Some(account(2)));
        assert_eq!(ledger.entered("other", &account(1)), Some(account(1)));
    }

    #[test]
    fn kinds_of_faults_are_named_with_their_number() {
        let mut account = Account::default();
        let faults =
            pumphouse_contract::FaultKind::ALL.iter().position(|kind| kind.label() == "memory");
        account.faults[faults.expect("a kind")] = 3;
        assert_eq!(kinds(&account), "memory=3");
    }
}
