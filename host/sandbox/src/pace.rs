//! A guest's way through the processors: turn by turn, each only with a place, each charged to its tenant.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::meter::Meter;
use crate::sched::{Claim, Gate};
use crate::settings::Limits;
use crate::tenant::Tenant;

/// A call that has waited for more than this part of its deadline says that its tenant has more than it can do.
const LATE: u32 = 10;

/// The call used more time on a processor than its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuSpent;

/// Runs one call's future: it computes while it holds a place, and holds none while it waits in a host call.
#[derive(Debug)]
pub(crate) struct Paced<'a> {
    tenant: &'a Tenant,
    limits: &'a Limits,
    place: Claim<&'a Gate>,
    pub(crate) meter: Meter,
    /// It waits in a host call.
    pending: bool,
    /// It has waited too long, and that was said.
    late: bool,
}

impl<'a> Paced<'a> {
    /// Of a call that has waited so long already.
    pub(crate) fn new(
        tenant: &'a Tenant,
        places: &'a Gate,
        limits: &'a Limits,
        waited: Duration,
    ) -> Self {
        let place = Claim::new(places, tenant.id);
        let meter = Meter::after(waited);
        Self { tenant, limits, place, meter, pending: false, late: false }
    }

    /// Whether it waited so long that its tenant was told to receive less.
    pub(crate) fn is_late(&self) -> bool {
        self.late
    }

    /// Runs it to its end, or until it has used up its limit. May be dropped at any time.
    pub(crate) async fn run<F: Future>(&mut self, future: F) -> Result<F::Output, CpuSpent> {
        let mut future = pin!(future);
        poll_fn(|cx| self.turn(future.as_mut(), cx)).await
    }

    /// It was cut at its deadline: what it waited for until now counts.
    pub(crate) fn cut(&mut self) {
        self.meter.end();
        self.note_lateness();
    }

    fn turn<F: Future>(
        &mut self,
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<F::Output, CpuSpent>> {
        self.resume();
        if self.place.poll_take(cx).is_pending() {
            self.meter.wait(self.place.short());
            return Poll::Pending;
        }
        let turn = self.meter.turn(future, cx);
        self.note_lateness();
        let ends = turn.polled.is_ready() || self.is_spent();
        if !ends && turn.yielded {
            self.place.tick(turn.used, cx.waker());
            return Poll::Pending;
        }
        self.place.give_back(turn.used);
        self.pending = !ends;
        if self.pending {
            self.tenant.demand.pend();
        } else if turn.polled.is_pending() {
            return Poll::Ready(Err(CpuSpent));
        }
        Poll::Ready(Ok(ready!(turn.polled)))
    }

    fn is_spent(&self) -> bool {
        self.limits.cpu.is_some_and(|cpu| self.meter.cpu > cpu)
    }

    fn note_lateness(&mut self) {
        if !self.late && self.meter.waited > self.limits.deadline / LATE {
            self.late = true;
            self.tenant.late();
        }
    }

    fn resume(&mut self) {
        if std::mem::take(&mut self.pending) {
            self.tenant.demand.resume();
        }
    }
}

impl Drop for Paced<'_> {
    fn drop(&mut self) {
        self.resume();
    }
}
