//! What the loop waits for, and until when.

use std::future::{pending, poll_fn};
use std::task::Poll;
use std::time::Instant;

use super::{Looper, hosts};
use crate::runtime::happened::Happened;
use crate::runtime::kill;

impl Looper {
    /// The next thing that happens.
    pub(super) fn next(&mut self) -> Happened {
        let clock = self.wake_at();
        let Self { live, input, drained, parking, .. } = self;
        live.tell_paused();
        let killing = async {
            match &mut live.killing {
                Some(killing) => killing.next().await,
                None => pending().await,
            }
        };
        let (samples, wake) = (&mut live.samples, live.pair.until().is_none());
        // GPU facts are taken before the process facts of their moment, also where they are not to
        // wake the loop.
        let sampled = poll_fn(|context| match samples.try_recv() {
            Ok(sampled) => Poll::Ready(Some(sampled)),
            Err(_) if wake => samples.poll_recv(context),
            Err(_) => Poll::Pending,
        });
        let next = async {
            tokio::select! {
                biased;
                input = input.recv() => Happened::Input(input),
                sampled = sampled => Happened::Sampled(sampled),
                tick = live.facts.recv() => Happened::Facts(tick),
                drained = drained.recv() => Happened::Drained(drained),
                event = killing => Happened::Kill(event),
                () = hosts::news(live.fleet.as_ref()) => Happened::Hosts,
                answer = live.answers.recv() => Happened::Answer(answer),
                _ = live.models.next() => Happened::Model,
            }
        };
        parking.wait(next, clock).unwrap_or(Happened::Clock)
    }

    /// When something is due although nothing arrives.
    fn wake_at(&self) -> Instant {
        let at = self.due_at();
        self.live.pair.until().map_or(at, |until| at.min(until))
    }

    /// When a frame is due, or figures have aged.
    pub(super) fn due_at(&self) -> Instant {
        // Memory that should come back is looked for more often.
        let waiting = self.live.killing.as_ref().is_some_and(kill::Killing::has_finished);
        let after = self.idle.wake_after(&self.live, &self.screen);
        let aged = self.quiet_since + if waiting { kill::POLL } else { after };
        match self.draw_at {
            Some(at) if self.idle.draws(&self.screen) => at.min(aged),
            _ => aged,
        }
    }
}
