//! The clock of a server that answers a case.

use std::thread::sleep;
use std::time::{Duration, UNIX_EPOCH};

use memgate_certs::clock::Clock;
use memgate_model::request::Occasion;
use memgate_workbench::files::casefile::Case;

/// How much of a second is left for the answer.
const ROOM: Duration = Duration::from_millis(500);

/// A clock that shows the time of the case, for at least [`ROOM`]; the machine's for a case without a time. It goes by
/// whole seconds beside the machine's, so it may have to wait for the next one.
pub(crate) fn clock_of(case: &Case) -> Clock {
    let (clock, time) = (Clock::default(), case.occasion.now);
    if time == Occasion::default().now {
        return clock;
    }
    let since_epoch = clock.now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = Duration::from_secs(1).saturating_sub(Duration::from_nanos(since_epoch.subsec_nanos().into()));
    if left < ROOM {
        sleep(left);
    }
    clock.shift(time.as_second() - clock.unix_now());
    clock
}
