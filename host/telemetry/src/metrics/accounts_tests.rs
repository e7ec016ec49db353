use super::*;

/// Tenants as a sandbox would list them: the account of a tenant has all that its handlers ever did.
#[derive(Default)]
struct World {
    tenants: BTreeMap<String, (Account, BTreeMap<String, Account>)>,
}

impl World {
    fn call(&mut self, handler: &str, calls: u64) {
        let tenant = handler.split('/').next().unwrap_or_default();
        let (total, handlers) = self.tenants.entry(tenant.to_owned()).or_default();
        let own = handlers.entry(handler.to_owned()).or_default();
        for account in [total, own] {
            account.calls += calls;
            account.acks += calls;
            account.cpu += Duration::from_micros(calls);
        }
    }

    /// The handler is taken out of the configuration; its tenant's account keeps what it did.
    fn remove(&mut self, handler: &str) {
        for (_, handlers) in self.tenants.values_mut() {
            handlers.remove(handler);
        }
    }

    fn list(&self) -> Vec<TenantStatus> {
        let tenants = self.tenants.iter();
        tenants
            .map(|(name, (account, handlers))| TenantStatus {
                name: name.clone(),
                account: *account,
                handlers: handlers
                    .iter()
                    .map(|(name, account)| HandlerAccount { name: name.clone(), account: *account })
                    .collect(),
                weight: 100,
                computing: 0,
                waiting: 0,
                slowed: false,
            })
            .collect()
    }

    fn total(&self) -> u64 {
        self.tenants.values().map(|(account, _)| account.calls).sum()
    }
}

fn calls(accounts: &Accounts) -> BTreeMap<(String, String), u64> {
    let rows = accounts.rows().into_iter();
    rows.map(|row| ((row.tenant, row.handler), row.account.calls)).collect()
}

fn shown(accounts: &Accounts) -> Vec<(String, u64)> {
    calls(accounts).into_iter().map(|((_, handler), calls)| (handler, calls)).collect()
}

fn pairs(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect()
}

#[test]
fn few_handlers_have_series_of_their_own() {
    let (accounts, mut world) = (Accounts::new(10), World::default());
    world.call("acme/idle", 0);
    world.call("acme/orders", 3);
    accounts.look(&world.list());
    assert_eq!(
        shown(&accounts),
        pairs(&[("acme/orders", 3)]),
        "one that was never called has none"
    );
    world.call("acme/idle", 1);
    world.call("acme/orders", 1);
    accounts.look(&world.list());
    assert_eq!(shown(&accounts), pairs(&[("acme/idle", 1), ("acme/orders", 4)]));
}

#[test]
fn beyond_the_labels_the_busiest_have_one_and_the_rest_is_summed() {
    let (accounts, mut world) = (Accounts::new(2), World::default());
    for (name, calls) in [("a/1", 5), ("a/2", 900), ("a/3", 5), ("b/1", 900)] {
        world.call(name, calls);
    }
    accounts.look(&world.list());
    // The first label goes to the busiest, the second to one that is worth it.
    let expected = pairs(&[("a/2", 900), ("_other", 10), ("b/1", 900)]);
    let mut found = shown(&accounts);
    found.sort();
    let mut expected = expected;
    expected.sort();
    assert_eq!(found, expected);
}

/// One that becomes busy later finds a label; what it did before stays where it was counted.
#[test]
fn a_label_is_kept_for_one_that_is_busy_later() {
    let (accounts, mut world) = (Accounts::new(4), World::default());
    for n in 0..10 {
        world.call(&format!("a/{n}"), 10_000);
    }
    world.call("a/late", 1);
    accounts.look(&world.list());
    assert_eq!(accounts.rows().len(), 5, "four labels, and the others");
    assert!(!accounts.has("a/late"));

    let (accounts, mut world) = (Accounts::new(4), World::default());
    world.call("a/1", 10_000);
    world.call("a/2", 9_000);
    world.call("a/late", 7);
    accounts.look(&world.list());
    assert!(accounts.has("a/1") && accounts.has("a/2") && !accounts.has("a/late"));
    world.call("a/1", 1_000);
    world.call("a/late", 500);
    accounts.look(&world.list());
    let expected = [("_other", 507), ("a/1", 11_000), ("a/2", 9_000), ("a/late", 0)];
    assert_eq!(shown(&accounts), pairs(&expected), "from now on");
    world.call("a/late", 3);
    accounts.look(&world.list());
    assert!(shown(&accounts).contains(&("a/late".into(), 3)));
}

#[test]
fn a_handler_that_is_gone_keeps_its_series_and_one_that_comes_back_goes_on() {
    let (accounts, mut world) = (Accounts::new(4), World::default());
    world.call("a/1", 5);
    accounts.look(&world.list());
    world.remove("a/1");
    accounts.look(&world.list());
    assert_eq!(shown(&accounts), pairs(&[("a/1", 5)]));
    world.call("a/1", 2);
    accounts.look(&world.list());
    assert_eq!(shown(&accounts), pairs(&[("a/1", 7)]));
}

/// Every series only grows and never goes away, their sum is what was called, and there are no more than labels.
#[test]
fn whatever_happens_the_totals_are_exact_and_nothing_goes_back() {
    // A small generator: the sequence is the same in every run.
    let mut state = 7_u64;
    let mut roll = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for most in [1, 2, 5, 40] {
        let (accounts, mut world) = (Accounts::new(most), World::default());
        let mut before = BTreeMap::new();
        for look in 0..300 {
            for _ in 0..roll(6) {
                let name = format!("t{}/h{}", roll(8), roll(6));
                match roll(12) {
                    0 => world.remove(&name),
                    n => world.call(&name, n * n * roll(40)),
                }
            }
            accounts.look(&world.list());
            let now = calls(&accounts);
            for (series, calls) in &before {
                assert!(
                    now.get(series) >= Some(calls),
                    "{series:?} in look {look} with {most} labels"
                );
            }
            assert_eq!(now.values().sum::<u64>(), world.total(), "look {look} with {most} labels");
            let own = now.keys().filter(|(_, handler)| handler != OTHER).count();
            assert!(own <= most && now.len() <= 2 * most + 1, "{own} of {} with {most}", now.len());
            before = now;
        }
    }
}
