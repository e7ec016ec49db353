use super::*;

const MILLI: Duration = Duration::from_millis(1);

fn shares(measure: Measure, capacity: usize, terms: &[(u32, usize)]) -> Shares<usize> {
    let mut shares = Shares::new(measure, capacity);
    for (party, (weight, most)) in terms.iter().enumerate() {
        shares.join(party, Terms { weight: *weight, most: *most });
    }
    shares
}

/// All who get a place now.
fn given(shares: &mut Shares<usize>) -> Vec<usize> {
    std::iter::from_fn(|| shares.next()).collect()
}

/// Endless calls as the gate runs them: a call that computes for a tick is charged, and makes room where it owes it.
struct World {
    shares: Shares<usize>,
    /// Calls that hold a place, by tenant.
    running: Vec<usize>,
    /// What each tenant used, in ticks.
    used: Vec<u64>,
}

impl World {
    fn new(capacity: usize, terms: &[(u32, usize)]) -> Self {
        let shares = shares(Measure::Used, capacity, terms);
        Self { shares, running: Vec::new(), used: vec![0; terms.len()] }
    }

    fn begin(&mut self, tenant: usize, calls: usize) {
        for _ in 0..calls {
            if self.shares.take(tenant) {
                self.running.push(tenant);
            } else {
                self.shares.wait(tenant, tenant);
            }
        }
    }

    /// So many ticks of one processor, which takes the calls that hold a place in turn.
    fn run(&mut self, ticks: usize) {
        for _ in 0..ticks {
            let tenant = self.running.remove(0);
            self.used[tenant] += 1;
            self.shares.charge(tenant, MILLI);
            if self.shares.owes(tenant) {
                self.shares.wait(tenant, tenant);
                self.shares.give_back(tenant);
                self.running.extend(given(&mut self.shares));
            } else {
                self.running.push(tenant);
            }
        }
    }
}

#[test]
fn a_place_that_is_free_is_taken_at_once_up_to_the_tenants_own_bound() {
    let mut shares = shares(Measure::Used, 3, &[(100, 2), (100, 2)]);
    assert!(shares.take(0) && shares.take(0));
    assert!(!shares.take(0), "its own bound");
    assert_eq!(shares.short(0), Short::Tenant);
    assert!(shares.take(1));
    assert!(!shares.take(1), "the places of all");
    assert_eq!(shares.short(1), Short::All);
    assert_eq!((shares.held(0), shares.held(1)), (2, 1));
}

#[test]
fn within_a_tenant_who_came_first_goes_first_and_nobody_passes_who_waits() {
    let mut shares = shares(Measure::Used, 1, &[(100, 1)]);
    assert!(shares.take(0));
    let numbers: Vec<u64> = (10..13).map(|call| shares.wait(0, call)).collect();
    assert!(shares.leave(0, numbers[1]), "it waited");
    assert!(!shares.leave(0, numbers[1]), "it is gone");
    shares.give_back(0);
    assert!(!shares.take(0), "the place is for those who wait");
    assert_eq!(given(&mut shares), [10]);
    assert!(!shares.leave(0, numbers[0]), "it was given a place");
    shares.give_back(0);
    assert_eq!(given(&mut shares), [12]);
    assert_eq!((shares.held(0), shares.waiting(0)), (1, 0));
}

#[test]
fn of_instances_who_holds_fewer_by_weight_goes_first() {
    for (weights, expected) in [([100, 100], vec![1, 1]), ([400, 100], vec![0, 1])] {
        let terms = [(weights[0], 9), (weights[1], 9), (100, 9)];
        let mut shares = shares(Measure::Held, 4, &terms);
        // The first holds two, the second none, the third two.
        for party in [0, 0, 2, 2] {
            assert!(shares.take(party));
        }
        shares.wait(0, 0);
        shares.wait(1, 1);
        shares.wait(1, 1);
        // By weight 400 the two of the first count as half a place.
        let mut order = Vec::new();
        for _ in 0..2 {
            shares.give_back(2);
            order.extend(given(&mut shares));
        }
        let first: Vec<usize> = order.into_iter().collect();
        assert_eq!(first.len(), 2);
        assert_eq!(first[0], 1, "who has none comes first");
        assert_eq!(first[1], expected[0], "{weights:?}");
    }
}

#[test]
fn among_equals_the_longest_wait_decides_so_that_no_number_is_favoured() {
    let mut shares = shares(Measure::Held, 1, &[(100, 1); 4]);
    assert!(shares.take(3));
    let mut turns = Vec::new();
    for party in [2, 0, 1] {
        shares.wait(party, party);
    }
    let mut holder = 3;
    for _ in 0..8 {
        shares.give_back(holder);
        shares.wait(holder, holder);
        holder = given(&mut shares)[0];
        turns.push(holder);
    }
    assert_eq!(turns, [2, 0, 1, 3, 2, 0, 1, 3]);
}

/// FR-20: two tenants that fill all places make room for a third one at their next tick.
#[test]
fn fr_20_a_call_that_computes_makes_room_for_a_tenant_that_had_less() {
    let mut world = World::new(8, &[(100, 4); 3]);
    world.begin(0, 16);
    world.begin(1, 16);
    world.run(1_000);
    assert!(!world.shares.take(2));
    world.shares.wait(2, 2);
    let mut ticks = 0;
    while !world.running.contains(&2) {
        world.run(1);
        ticks += 1;
    }
    assert!(ticks <= 2, "{ticks} ticks");
}

#[test]
fn endless_calls_share_by_weight_where_places_are_short() {
    // Beyond its bound no weight helps.
    for (weights, most, wanted) in [
        ([100, 100], 8, 1.0),
        ([200, 100], 8, 2.0),
        ([1_000, 100], 8, 10.0),
        ([300, 100], 5, 5.0 / 3.0),
    ] {
        let mut world = World::new(8, &[(weights[0], most), (weights[1], most)]);
        world.begin(0, 16);
        world.begin(1, 16);
        world.run(20_000);
        let ratio = world.used[0] as f64 / world.used[1] as f64;
        assert!((ratio / wanted - 1.0).abs() < 0.1, "{weights:?}: {ratio} instead of {wanted}");
    }
}

#[test]
fn who_comes_back_from_idleness_has_nothing_saved_up() {
    let mut world = World::new(4, &[(100, 4); 2]);
    world.begin(0, 8);
    world.run(10_000);
    world.begin(1, 8);
    world.run(2_000);
    let share = world.used[1] as f64 / 2_000.0;
    assert!((0.45..0.6).contains(&share), "the newcomer had {share} of the processor");
}

#[test]
fn who_used_what_nobody_wanted_is_soon_even_again() {
    let mut world = World::new(8, &[(100, 8); 4]);
    // The second holds one place all the time, and so has used little when the others come.
    world.begin(1, 1);
    world.begin(0, 7);
    world.run(80_000);
    let before = world.used[0];
    world.begin(2, 16);
    world.begin(3, 16);
    world.begin(0, 16);
    world.run(4_000);
    let share = (world.used[0] - before) as f64 / 4_000.0;
    assert!(share > 0.2, "it had {share} of the processor since the others came");
}

#[test]
fn a_change_of_terms_takes_effect_on_those_who_wait() {
    let mut shares = shares(Measure::Used, 8, &[(100, 1)]);
    assert!(shares.take(0));
    for call in 0..4 {
        shares.wait(0, call);
    }
    assert_eq!(given(&mut shares), Vec::<usize>::new());
    shares.join(0, Terms { weight: 100, most: 4 });
    assert_eq!(given(&mut shares), [0, 1, 2]);
    assert!(shares.wanted(0));
}

/// Whatever happens in whatever order: no place is lost, none is given twice, and none is free that someone waits for.
#[test]
fn the_places_add_up_after_any_history() {
    let terms: Vec<(u32, usize)> = (0..50).map(|n| (1 + n * 7, 1 + n as usize % 5)).collect();
    let mut shares = shares(Measure::Used, 16, &terms);
    let mut waiting: Vec<(usize, u64)> = Vec::new();
    let mut held = vec![0_usize; terms.len()];
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut roll = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for _ in 0..20_000 {
        let party = roll(terms.len());
        match roll(4) {
            0 if shares.take(party) => held[party] += 1,
            0 | 1 => waiting.push((party, shares.wait(party, party))),
            2 if held[party] > 0 => {
                shares.charge(party, MILLI * roll(5) as u32);
                shares.give_back(party);
                held[party] -= 1;
            }
            _ if !waiting.is_empty() => {
                let (party, number) = waiting.swap_remove(roll(waiting.len()));
                assert!(shares.leave(party, number));
            }
            _ => {}
        }
        given(&mut shares).into_iter().for_each(|party| held[party] += 1);
        waiting.retain(|(party, number)| shares.waiter(*party, *number).is_some());
        assert!(held.iter().sum::<usize>() <= 16);
        for (party, (_, most)) in terms.iter().enumerate() {
            assert!(held[party] <= *most && held[party] == shares.held(party));
            let could = held.iter().sum::<usize>() < 16 && held[party] < *most;
            assert!(!could || shares.waiting(party) == 0, "tenant {party} waits for a free place");
        }
    }
}
