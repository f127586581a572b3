//! How many queries a second one client may send. Clients are told apart by their addresses, as for connections.
//!
//! The address of a query by UDP may be another host's: a client beyond its rate gets a truncated response without records, which is
//! no larger than its query, and a real one asks again by TCP. Queries by TCP are counted by themselves, so that nobody can use up the
//! rate of somebody else.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use crate::serving::client;

/// The most clients that are told apart: 4 MiB. Others share one rate while so many have sent a query in the last second.
const CLIENTS: usize = 65_536;
/// What a client that has sent nothing for so long may send at once.
const BURST: Duration = Duration::from_secs(1);

/// The rates of all clients, as token buckets: each refills evenly, and holds what fits into a second.
#[derive(Debug)]
pub(super) struct Rates {
    /// What one query takes of the bucket.
    cost: Duration,
    /// When the bucket of each client is full again, if it is not.
    full_at: HashMap<IpAddr, Instant>,
    /// The same of the bucket that all others share.
    others_full_at: Option<Instant>,
    /// When full buckets were last looked for.
    forgotten_at: Option<Instant>,
}

impl Rates {
    /// So many queries a second of each client; any number if it is 0.
    pub(super) fn new(per_second: u32) -> Option<Self> {
        (per_second > 0).then(|| Self {
            cost: BURST / per_second,
            full_at: HashMap::new(),
            others_full_at: None,
            forgotten_at: None,
        })
    }

    /// Counts a query of a client. Returns whether the client may send it.
    pub(super) fn take(&mut self, address: IpAddr, now: Instant) -> bool {
        let client = client(address);
        let is_known = self.full_at.contains_key(&client);
        if !is_known && self.full_at.len() >= CLIENTS {
            self.forget_full(now);
        }
        let cost = self.cost;
        if is_known || self.full_at.len() < CLIENTS {
            let full_at = self.full_at.entry(client).or_insert(now);
            take(full_at, cost, now)
        } else {
            take(self.others_full_at.get_or_insert(now), cost, now)
        }
    }

    /// Forgets the clients whose buckets are full, as if they had never asked; once a second at most.
    fn forget_full(&mut self, now: Instant) {
        let is_due = |last: Instant| now.saturating_duration_since(last) >= BURST;
        if self.forgotten_at.is_none_or(is_due) {
            self.full_at.retain(|_, full_at| *full_at > now);
            self.forgotten_at = Some(now);
        }
    }
}

/// Takes the cost of a query of a bucket, if there is as much in it.
fn take(full_at: &mut Instant, cost: Duration, now: Instant) -> bool {
    let next = now.max(*full_at) + cost;
    let is_allowed = next.saturating_duration_since(now) <= BURST;
    if is_allowed {
        *full_at = next;
    }
    is_allowed
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn allowed(rates: &mut Rates, address: &str, now: Instant, count: usize) -> usize {
        let address = address.parse().unwrap();
        (0..count).filter(|_| rates.take(address, now)).count()
    }

    #[test]
    fn a_client_gets_its_rate_and_others_do_not_pay_for_it() {
        let mut rates = Rates::new(10).unwrap();
        let start = Instant::now();
        assert_eq!(allowed(&mut rates, "10.0.0.1", start, 20), 10);
        assert_eq!(allowed(&mut rates, "10.0.0.2", start, 5), 5);
        let later = start + Duration::from_millis(300);
        assert_eq!(allowed(&mut rates, "10.0.0.1", later, 20), 3);
        assert_eq!(allowed(&mut rates, "10.0.0.2", later, 20), 8);
        let later = start + Duration::from_secs(60);
        assert_eq!(
            allowed(&mut rates, "10.0.0.1", later, 20),
            10,
            "and no more"
        );
        assert_eq!(allowed(&mut rates, "fd00::1", later, 6), 6);
        assert_eq!(allowed(&mut rates, "fd00::ffff:2", later, 6), 4, "one /64");
    }

    #[test]
    fn without_a_rate_nothing_is_counted() {
        assert!(Rates::new(0).is_none());
    }

    #[test]
    fn memory_is_bounded_and_clients_that_ask_slowly_are_not_mixed_up() {
        let mut rates = Rates::new(2).unwrap();
        let start = Instant::now();
        let address = |number: usize| {
            let number = u32::try_from(number).unwrap();
            IpAddr::V4(Ipv4Addr::from_bits(number))
        };
        let all = (0..CLIENTS).all(|number| rates.take(address(number), start));
        assert!(all);
        let others = (CLIENTS..CLIENTS + 10).filter(|number| rates.take(address(*number), start));
        assert_eq!(others.count(), 2, "others share one rate");
        assert!(rates.take(address(7), start), "a known one has its own");
        assert_eq!(rates.full_at.len(), CLIENTS);
        let later = start + Duration::from_secs(2);
        assert!((CLIENTS..CLIENTS + 10).all(|number| rates.take(address(number), later)));
        assert_eq!(rates.full_at.len(), 10);
    }
}
